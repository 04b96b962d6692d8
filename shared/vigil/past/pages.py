"""Reading what was imported of a conversation, some at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from ..bus.bus import Bus, Message
from ..contracts.codec import decode_past
from ..contracts.past.words import PastWords
from ..errors import InvalidInput
from ..subjects import SessionKey
from . import places

PAGE: Final = 500
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024


async def pages(bus: Bus, key: SessionKey, first: int, last: int) -> AsyncIterator[list[Message]]:
    """Yield its messages from one stream sequence to another, both included, in their order."""
    has_more = True
    while has_more and first <= last:
        page, has_more = await bus.page(
            key.stream, [places.all_of(key)], first, limit=PAGE, bytes_max=PAGE_BYTES_MAX
        )
        if not page:
            return
        yield [one for one in page if one.seq <= last]
        first = page[-1].seq + 1


def readable(records: Iterable[bytes]) -> Iterator[PastWords]:
    """Yield what can be read of records of it."""
    for data in records:
        try:
            yield decode_past(data)
        except InvalidInput:
            continue
