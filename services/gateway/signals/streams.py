"""Server-Sent Events: what every stream of them needs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
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


async def until_gone(receive: Any) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def serve_until_gone(
    serving: Coroutine[Any, Any, None], receive: Any, stopping: asyncio.Event, name: str
) -> None:
    """Serve to the end, or until the client goes or the process stops. Raises: what serving does,
    but for a client that went."""
    served = asyncio.create_task(serving, name=name)
    parts: tuple[asyncio.Task[Any], ...] = (
        served,
        asyncio.create_task(until_gone(receive), name=name),
        asyncio.create_task(stopping.wait(), name=name),
    )
    try:
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
    if not served.cancelled():
        with contextlib.suppress(OSError):
            served.result()
