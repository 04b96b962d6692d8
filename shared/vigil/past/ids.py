"""Which ids the messages have that were taken of conversations, so that none is taken twice."""

from __future__ import annotations

from typing import Final

from ..bus.bus import Bus
from ..subjects import SessionKey
from . import places
from .pages import pages, readable

CONVERSATIONS_MAX: Final = 8
"""Those of which ids are kept: a conversation comes in parts, one after the other."""


class KnownIds:
    """Ids of messages, by conversation: each part is read from the log once."""

    def __init__(self) -> None:
        self._known: dict[SessionKey, tuple[int, int, set[str]]] = {}
        """First and last stream sequence that was read, and what was there."""

    async def of(self, bus: Bus, key: SessionKey, last: int) -> set[str]:
        """Return the ids of the messages up to stream sequence `last`; those of records that
        can't be read are missing. Raises: Unavailable, BusError."""
        begun = await bus.get_next(key.stream, places.all_of(key), 1)
        first = 0 if begun is None else begun.seq
        known_first, read_to, ids = self._known.pop(key, (first, 0, set()))
        # It was deleted since, and comes again; or another request has looked further ahead.
        if known_first != first or read_to > last:
            read_to, ids = 0, set()
        async for page in pages(bus, key, read_to + 1, last):
            ids |= {words.id for words in readable(one.data for one in page)}
        self._known[key] = (first, last, ids)
        while len(self._known) > CONVERSATIONS_MAX:
            del self._known[next(iter(self._known))]
        return ids
