"""What goes out to clients that may be gone, and what of their mistakes is no line in our log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final

_BY_CLIENTS: Final = frozenset(
    {
        "Invalid HTTP request received.",
        "Unsupported upgrade request.",
        "ASGI callable returned without completing handshake.",
        "Invalid UTF-8 sequence received from client.",
    }
)
"""What uvicorn logs of mistakes of clients, which are answered: anybody could fill the log with
them, also without a token. (It tells the third of each WebSocket that is refused.)"""


WAITING_BYTES_MAX: Final = 16 * 1024
"""What is gathered before it's written, at most."""


class Outgoing:
    """A connection that writes once a turn of the loop: a head and its body go out together.

    What can't be sent any more is not sent, instead of being an error: a client may leave at any
    time, and a request that was refused while it came in is still being answered by the
    application. Neither is a fault that anybody could mend.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_ended = False

    def write(self, data: bytes) -> None:
        if self._is_ended or self._transport.is_closing():
            return
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > WAITING_BYTES_MAX:  # so that a full socket is told to who writes on
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))

    def write_eof(self) -> None:
        self._flush()
        if not (self._is_ended or self._transport.is_closing()):
            self._is_ended = True
            with contextlib.suppress(OSError):  # the other side was quicker
                self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def leave_out_mistakes() -> None:
    """Keep what clients do wrong out of the log; may be called again."""
    logging.getLogger("uvicorn.error").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.msg not in _BY_CLIENTS
