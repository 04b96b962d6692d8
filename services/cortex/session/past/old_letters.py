"""Letters that the history has no more: what was summed up, the log has whole (FLOW F-3).

Its handle tells the turn. The turns are found by halving: their ordinals grow with their place.
"""

from __future__ import annotations

from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import Loop, Turn
from vigil.subjects import SessionKey

from ...core.context.history import chunk_of, without
from ...core.context.letters import ClosedLetter, find, of_turn, ordinal_of
from ...core.context.versions import without_taken_back
from ...core.draft.chunk import Chunk
from .inheritance import readable

BEFORE: Final = 60
"""Turns before it that are read, too: how letters are counted depends on the calls of the exchange,
and no exchange that is worked through has more."""


class OldLetters:
    """What the log has of letters that the open loop reads: read once, however many steps it takes.
    A turn that is stored stays as it is."""

    def __init__(self, bus: Bus, key: SessionKey) -> None:
        self._bus = bus
        self._key = key
        self._loop = ""
        self._named: dict[str, ClosedLetter | None] = {}
        self._at: dict[int, tuple[ClosedLetter, ...]] = {}

    async def named(self, loop: Loop, handle: str) -> ClosedLetter | None:
        """Return a letter by its handle, as `find_old`. Raises: Unavailable."""
        self._begin(loop)
        if handle not in self._named:
            self._named[handle] = await find_old(self._bus, self._key, handle)
        return self._named[handle]

    async def at(self, loop: Loop, seq: int) -> tuple[ClosedLetter, ...]:
        """Return the letters of a turn, as `letters_at`. Raises: Unavailable."""
        self._begin(loop)
        if seq not in self._at:
            self._at[seq] = await letters_at(self._bus, self._key, seq)
        return self._at[seq]

    def _begin(self, loop: Loop) -> None:
        if loop.cause.id != self._loop:
            self._loop, self._named, self._at = loop.cause.id, {}, {}


async def find_old(bus: Bus, key: SessionKey, handle: str) -> ClosedLetter | None:
    """Return a letter of the session by its handle; None: the log has none of that name.

    Raises:
        Unavailable: the broker is away.
    """
    return find(await _chunks(bus, key, ordinal_of(handle)), handle)


async def letters_at(bus: Bus, key: SessionKey, seq: int) -> tuple[ClosedLetter, ...]:
    """Return the letters of the turn at a place of the log; none, if there is no such turn.

    Raises:
        Unavailable: the broker is away.
    """
    found = await bus.get_of(key, seq)
    turn = None if found is None or not key.is_turn(found.subject) else readable(found)
    return () if turn is None else of_turn(await _chunks(bus, key, turn.ordinal), seq)


async def _chunks(bus: Bus, key: SessionKey, ordinal: int) -> list[Chunk]:
    """Return what a session's history had from the exchange of a turn on, up to it and no less."""
    newest = await bus.get_last(key.stream, key.turns)
    last = None if newest is None else readable(newest)
    if newest is None or last is None or not 0 < ordinal <= last.ordinal:
        return []
    start = await _place_of(bus, key, max(ordinal - BEFORE, 1), newest.seq)
    turns: list[tuple[int, Turn]] = []
    has_more = True
    while has_more and (not turns or turns[-1][1].ordinal < ordinal):
        page, has_more = await bus.page(key.stream, [key.turns], start, limit=BEFORE + 1)
        turns += [(one.seq, turn) for one in page if (turn := readable(one)) is not None]
        start = page[-1].seq + 1 if page else start
        has_more = has_more and bool(page)
    kept = [(seq, without_taken_back(turn, last.state.taken_back)) for seq, turn in turns]
    chunks = [chunk_of(seq, turn) for seq, turn in kept if turn.rows]
    unsaid = {id_ for _, turn in turns for id_ in turn.unsaid}
    return list(without(chunks, unsaid))


async def _place_of(bus: Bus, key: SessionKey, ordinal: int, newest: int) -> int:
    """Return a place of the log from which on all turns from that ordinal on are read."""
    low, high = 1, newest
    while low < high:
        middle = (low + high) // 2
        found = await bus.get_next(key.stream, key.turns, middle)
        turn = None if found is None else readable(found)
        if found is None or turn is None or turn.ordinal >= ordinal:
            high = middle
        else:
            low = found.seq + 1
    return low
