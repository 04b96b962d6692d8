"""uvicorn, run by us: our socket, our signals, our limits on heads, our form of errors."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vigil.errors import ConfigError
from vigil.sections import Gateway

from .decide import LOOPBACK
from .problem import MEDIA_TYPE, Problem

HEAD_BYTES_MAX: Final = 64 * 1024
"""Request line and headers. httptools itself has no limit."""
STALLED_MS: Final = 30_000
FILES_MAX: Final = 65_536
LINGER_S: Final = 1.0
STOP_GRACE_S: Final = 5


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, with a limit on heads, and with problem+json for what it refuses."""

    _head_bytes = 0
    _is_in_head = True
    _is_refused = False

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if not self._is_in_head or self._is_refused:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(Problem(431, f"headers must have at most {HEAD_BYTES_MAX} bytes"))

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, msg))

    def _refuse(self, problem: Problem) -> None:
        self._is_refused = True
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


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs the process."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def raise_file_limit() -> None:
    """Let this process have as many open sockets as the system allows it (often 1,024 else)."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(config: Gateway) -> socket.socket:
    """Bind the address.

    Raises:
        ConfigError: it's not loopback and `gateway.allow_public` isn't set, or can't be bound.
    """
    if not _is_loopback(config.host) and not config.allow_public:
        raise ConfigError(
            f"gateway.host {config.host!r} is not loopback: set gateway.allow_public = true "
            "to listen there, behind TLS"
        )
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # With the protocol spelled out: asyncio turns Nagle's delay (40 ms an answer) off only then.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            # A peer that takes nothing for that long is gone: don't keep its data for ever.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MS)
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        where = f"{config.host}:{config.port}"
        raise ConfigError(f"the gateway can't listen on {where}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def _is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def server_for(app: Any, config: Gateway, on_listening: Callable[[], None]) -> Server:
    """Return a server for the ASGI application `app`."""
    return Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="websockets-sansio",
            ws_max_size=config.body_bytes_max,
            ws_per_message_deflate=False,
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=2048,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=STOP_GRACE_S,
        ),
        on_listening,
    )
