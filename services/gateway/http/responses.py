"""What goes out to clients that may be gone, and what of their mistakes is no line in our log."""

from __future__ import annotations

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


class Outgoing:
    """A connection to which what can't be sent any more is not sent, instead of being an error.

    A client may leave at any time, and a request that was refused while it came in is still being
    answered by the application. Neither is a fault that anybody could mend.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._is_ended = False

    def write(self, data: bytes) -> None:
        if not (self._is_ended or self._transport.is_closing()):
            self._transport.write(data)

    def write_eof(self) -> None:
        if not (self._is_ended or self._transport.is_closing()):
            self._is_ended = True
            with contextlib.suppress(OSError):  # the other side was quicker
                self._transport.write_eof()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def leave_out_mistakes() -> None:
    """Keep what clients do wrong out of the log; may be called again."""
    logging.getLogger("uvicorn.error").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.msg not in _BY_CLIENTS
