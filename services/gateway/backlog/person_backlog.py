"""How far a person is behind over all their threads, so that a flood holds up nobody else.

This process notes what it stored for each person, and asks the log only when there is as much of it
as may be: then what the sessions have folded since is taken off, those that wait for longest first.
So somebody whose messages are answered costs about one question a session and a hundred messages,
and a flood a bounded number of questions a second. A replica knows what came through it alone, and
nothing of what came before it was started.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import OrderedDict
from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import POSITION_HEADER, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

SESSIONS_AT_ONCE: Final = 64
"""Of a person, that are asked for at a time."""
WAIT_S: Final = 1.0
"""After none of them had got any further, for which nothing is asked again."""
PEOPLE_MAX: Final = 10_000
_ALL_GONE: Final = sys.maxsize
"""The position of a session of which nothing is left: its person was erased, say."""


class _Person:
    """What was stored for one person and isn't known to be processed."""

    __slots__ = ("asking", "behind", "count", "wait_until_s")

    def __init__(self) -> None:
        self.behind: dict[SessionKey, list[int]] = {}
        """By session, whichever waits for longest first."""
        self.count = 0
        self.wait_until_s = 0.0
        self.asking = asyncio.Lock()


class Outstanding:
    """The people who wrote lately, and the sequences of what they wrote."""

    def __init__(self, bus: Bus, events_max: int) -> None:
        self._bus = bus
        self._events_max = events_max
        self._people: OrderedDict[str, _Person] = OrderedDict()

    def note(self, session: SessionKey, seq: int) -> None:
        """Note an event that was stored."""
        person = self._people.setdefault(session.user, _Person())
        self._people.move_to_end(session.user)
        if len(self._people) > PEOPLE_MAX:
            self._people.popitem(last=False)
        person.behind.setdefault(session, []).append(seq)
        person.count += 1

    async def has_room(self, user: str, now_s: float, share: float = 1.0) -> bool:
        """Return whether one more event of that person may be stored at monotonic `now_s`.

        `share` is how much of the bound this kind of event may fill: 0..1.

        Raises:
            BusError, Unavailable: the log can't be asked.
        """
        person = self._people.get(user)
        limit = max(1, int(self._events_max * share))
        if person is None or person.count < limit:
            return True
        if now_s < person.wait_until_s:
            return False
        async with person.asking:
            if person.count >= limit and now_s >= person.wait_until_s:
                before = person.count
                await self._take_off(person)
                if person.count == before:
                    person.wait_until_s = now_s + WAIT_S
        return person.count < limit

    async def _take_off(self, person: _Person) -> None:
        """Take off what the sessions that wait for longest have processed."""
        sessions = list(person.behind)[:SESSIONS_AT_ONCE]
        progress = await asyncio.gather(*(self._progress(session) for session in sessions))
        for session, (position, queued) in zip(sessions, progress, strict=True):
            seqs = person.behind.pop(session)
            left = [seq for seq in seqs if seq > position or seq in queued]
            person.count -= len(seqs) - len(left)
            if left:  # to the end: the next time others are asked
                person.behind[session] = left

    async def _progress(self, session: SessionKey) -> tuple[int, frozenset[int]]:
        """Return how far a session has folded its events, and which of them wait in its state."""
        turn = await self._bus.get_last(session.stream, session.turns)
        if turn is None:
            newest = await self._bus.get_last(session.stream, session.in_all)
            return (_ALL_GONE if newest is None else 0), frozenset()
        queued: frozenset[int] = frozenset()
        with contextlib.suppress(InvalidInput):  # the cortex starts anew from the position
            queued = frozenset(one.seq for one in decode_turn(turn.data).state.queue)
        return int(turn.header(POSITION_HEADER) or "0"), queued
