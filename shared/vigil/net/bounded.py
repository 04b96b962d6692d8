"""The body of an answer, read as far as it may be long."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def whole(chunks: AsyncIterator[bytes], bytes_max: int) -> bytes | None:
    """Return what comes in pieces; None: it has more than `bytes_max` bytes, and the rest of it
    isn't read."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > bytes_max:
            return None
    return bytes(body)
