"""Server-Sent Events: what every stream of them needs."""

from __future__ import annotations

from typing import Any, Final

MEDIA_TYPE: Final = "text/event-stream"
HEAD: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}
SILENCE_S: Final = 15.0
"""After which a comment shows that a stream lives."""


async def send_more(send: Any, body: bytes) -> None:
    """Send a piece."""
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def send_end(send: Any) -> None:
    """Send that there is no more."""
    await send({"type": "http.response.body", "body": b"", "more_body": False})
