"""uvicorn's protocols with limits: on heads, on the time that a request may take, on strangers.

A request has a deadline for its head and one for its body, from their first bytes on; neither moves
while bytes trickle in. A request that comes in one piece, which nearly all do, sets no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from .connections import Connections, HttpConnection
from .problem import MEDIA_TYPE, Problem
from .responses import Outgoing

HEAD_BYTES_MAX: Final = 64 * 1024
"""Request line and headers. httptools itself has no limit."""
LINGER_S: Final = 1.0
UNREAD_S: Final = 5.0
"""For the rest of a body that was answered already: so that the answer can be read."""
CONNECTION: Final = "vigil.connection"
"""Where the connection is in the ASGI scope."""

_HEAD: Final = "head"
_BODY: Final = "body"
_DONE: Final = "done"
_BLANKS: Final = (b" ", b"\t")


class Deadlines:
    """Seconds that the parts of a request, and a pause between two, may take."""

    def __init__(self, *, head_s: float, body_s: float, rest_s: float) -> None:
        self.head_s = head_s
        self.body_s = body_s
        self.rest_s = rest_s


@lru_cache(maxsize=1)
def _headers_at(second: int) -> list[tuple[bytes, bytes]]:
    """Return what every answer has that is begun in that second since 1970.

    >>> _headers_at(784887151)
    [(b'date', b'Tue, 15 Nov 1994 08:12:31 GMT')]
    """
    return [(b"date", formatdate(second, usegmt=True).encode())]


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, with problem+json for what it refuses."""

    def __init__(
        self, *arguments: Any, connections: Connections, deadlines: Deadlines, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._connections = connections
        self._deadlines = deadlines
        self._connection: HttpConnection | None = None
        self._head_bytes = 0
        self._phase = _HEAD
        self._timer: asyncio.TimerHandle | None = None
        self._timed_phase = ""
        self._rest_until = 0.0
        self._is_refused = False

    # ------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Outgoing(transport, self.loop)))
        peer = self.client[0] if self.client else ""
        self._connection = self._connections.open(peer, self.loop.time(), transport.abort)
        self._time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._connection is not None:
            self._connections.close(self._connection)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._stop_timer()
        self._connection, connection = None, self._connection
        made = self.ws_protocol_class

        def make(**named: Any) -> Any:
            assert made is not None  # noqa: S101 - or there would be no upgrade
            return made(connection=connection, **named)  # type: ignore[call-arg]

        self.ws_protocol_class = make  # type: ignore[assignment]
        super().handle_websocket_upgrade()

    # ------------------------------------------------------------ its requests

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self.server_state.default_headers = _headers_at(int(time.time()))
        super().data_received(data)
        if self._is_refused or self._connection is None or self.transport.is_closing():
            return
        if self._phase == _HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(Problem(431, f"headers must have at most {HEAD_BYTES_MAX} bytes"))
                return
        if self._phase != self._timed_phase:
            self._time()
        if self._is_at_rest() and self.timeout_keep_alive_task is None:
            # Empty lines between requests: they don't make the pause any longer.
            self.timeout_keep_alive_task = self.loop.call_at(
                self._rest_until, self.timeout_keep_alive_handler
            )

    def on_message_begin(self) -> None:
        self._phase = _HEAD
        super().on_message_begin()
        if self._connection is not None:
            self._connections.work(self._connection)
            self.scope[CONNECTION] = self._connection  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._head_bytes = 0
        for place, (name, value) in enumerate(self.headers):
            if value[-1:] in _BLANKS:
                # httptools leaves blanks at the end, which are no part of it (RFC 9110, 5.5).
                self.headers[place] = name, (found := value.rstrip(b" \t"))
                if name == b"expect" and found.lower() == b"100-continue":
                    self.expect_100_continue = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._phase = _DONE
        super().on_message_complete()

    def on_response_complete(self) -> None:
        is_known = self._connection is not None and self._connection.user is not None
        rest_s = self._deadlines.rest_s if is_known else self._deadlines.head_s
        self.timeout_keep_alive = rest_s  # type: ignore[assignment]
        self._rest_until = self.loop.time() + rest_s
        super().on_response_complete()
        if self._connection is None:
            return
        if self._is_at_rest():
            self._connections.rest(self._connection)
        elif self._phase == _BODY and not self.pipeline:
            self._set_timer(min(UNREAD_S, self._deadlines.body_s))

    def _is_at_rest(self) -> bool:
        return self._phase == _DONE and self.cycle.response_complete and not self.pipeline

    # ------------------------------------------------------------ time

    def _time(self) -> None:
        """Begin the deadline of the phase that the request is in."""
        self._timed_phase = self._phase
        if self._phase == _DONE:
            self._stop_timer()
            return
        is_head = self._phase == _HEAD
        self._set_timer(self._deadlines.head_s if is_head else self._deadlines.body_s)

    def _set_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._on_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        is_silent = self._phase == _HEAD and not self._head_bytes
        has_begun = self.cycle is not None and self.cycle.response_started
        if is_silent or (self._phase == _BODY and has_begun):
            self.transport.close()
            return
        if self._phase == _BODY and self.cycle is not None:
            # Whoever reads the body is told that the client is gone, and answers nobody.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._refuse(Problem(408, f"the {self._phase} of the request took too long"))

    # ------------------------------------------------------------ refusing

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, msg))

    def _refuse(self, problem: Problem) -> None:
        self._is_refused = True
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = problem.body()
        head = (
            f"HTTP/1.1 {problem.status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.write_eof()
        # Closed with input unread, the connection would be reset and the answer lost.
        self.loop.call_later(LINGER_S, self.transport.close)


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which goes on with the connection of the request that opened it."""

    def __init__(
        self, *, connections: Connections, connection: HttpConnection | None = None, **named: Any
    ) -> None:
        super().__init__(**named)
        self._connections = connections
        self._connection = connection

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        with contextlib.suppress(AttributeError):  # refused before there was a scope
            self.scope[CONNECTION] = self._connection  # type: ignore[typeddict-unknown-key]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._connections.close(self._connection)
        super().connection_lost(exc)
