"""When somebody last wrote in each conversation of an owner, known without reading all of them.

In some nobody ever wrote: an agent told something there, a report or a follow-up. Which these are
no subject says: what it said has one for each message. So it is read once from the subjects of
turns in which something was to be said, of which a conversation has few.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from vigil.addressees import speaks
from vigil.bus.bus import Bus, Message
from vigil.past import places, words
from vigil.subjects import Scope, SessionKey

OWNERS_MAX: Final = 64
"""Owners of whom it is kept in memory."""
READS_AT_ONCE: Final = 32


class LastWord(NamedTuple):
    """What was written last in a conversation: when, and its sequence in its log. What was
    imported was written when it was said."""

    written_at: datetime
    seq: int


class Talks(msgspec.Struct):
    """What is known of an owner's conversations, by their keys, the newest last."""

    written: dict[str, LastWord] = {}
    told: dict[str, LastWord] = {}
    """What the agent said last, where nobody wrote."""
    seen: dict[str, int] = {}
    """How far each log was read."""


class Recency:
    """When somebody last wrote in each conversation of an owner.

    The broker is asked only for what came since the last look.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: OrderedDict[Scope, Talks] = OrderedDict()
        self._locks: defaultdict[Scope, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._gate = asyncio.Semaphore(READS_AT_ONCE)

    async def of(self, whose: Scope) -> dict[str, LastWord]:
        """Return it by the key of the conversation, the newest last; some may be deleted by now."""
        return (await self.look(whose)).written

    async def look(self, whose: Scope) -> Talks:
        """Return it with those in which nobody wrote."""
        async with self._locks[whose]:
            known = self._known.pop(whose, None)
            known = await self._read(whose) if known is None else await self._go_on(whose, known)
            self._known[whose] = known
            if len(self._known) > OWNERS_MAX:
                gone, _ = self._known.popitem(last=False)
                self._locks.pop(gone, None)
            return known

    async def _read(self, whose: Scope) -> Talks:
        """Read what there is: of people what they wrote last, and who was only told something."""
        seen: dict[str, int] = {}
        written: list[tuple[LastWord, str]] = []
        everything, where = f"{places.of_owner(whose)}.>", places.by_person(whose)
        for stream in (await self._bus.layout()).streams("SESSIONS"):
            # Before anything else: what comes meanwhile is read then, once more.
            newest = await self._bus.get_last(stream, everything)
            seen[stream] = 0 if newest is None else newest.seq
            written += [_pair(one) for one in await self._bus.read(stream, [where], 0)]
        at = _sorted(written)
        keys = [one for one in await self._spoken(whose) if one not in at]
        found = await asyncio.gather(*(self._last_told(one) for one in keys))
        return Talks(at, _sorted(one for one in found if one is not None), seen)

    async def _spoken(self, whose: Scope) -> set[str]:
        """Return those in which something was to be said; it may have been void."""
        turns = await self._bus.subjects("SESSIONS", f"{places.of_owner(whose)}.*")
        past = await self._bus.subjects("SESSIONS", places.by_agent(whose))
        return {key_of(one) for one in (*filter(speaks, turns), *past)}

    async def _last_told(self, key: str) -> tuple[LastWord, str] | None:
        session = SessionKey.parse(key)
        async with self._gate:
            found = await self._bus.get_last(session.stream, session.transcript)
        return None if found is None else _pair(found)

    async def _go_on(self, whose: Scope, known: Talks) -> Talks:
        """Take in what was said since."""
        written: list[tuple[LastWord, str]] = []
        told: list[tuple[LastWord, str]] = []
        for stream, seen in known.seen.items():
            for message in await self._bus.read(stream, [places.said(whose)], seen + 1):
                (written if places.is_by_person(message.subject) else told).append(_pair(message))
                known.seen[stream] = message.seq
        at = _merged(known.written, written)
        known.told = _merged(known.told, [one for one in told if one[1] not in at])
        for key in known.told.keys() & {key for _, key in written}:
            del known.told[key]
        known.written = at
        return known


def _merged(known: dict[str, LastWord], came: list[tuple[LastWord, str]]) -> dict[str, LastWord]:
    """Return it with what came since, the newest last."""
    latest = next(reversed(known.values()), None)
    for written, key in sorted(came):
        if key not in known or known[key] < written:
            known.pop(key, None)
            known[key] = written
    if latest is not None and came and min(came)[0] < latest:
        return dict(sorted(known.items(), key=lambda pair: pair[1]))
    return known


def _sorted(found: Iterable[tuple[LastWord, str]]) -> dict[str, LastWord]:
    return _merged({}, list(found))


def _pair(message: Message) -> tuple[LastWord, str]:
    return LastWord(_written_at(message), message.seq), key_of(message.subject)


def _written_at(message: Message) -> datetime:
    said = words.said_in(message) if places.is_past(message.subject) else None
    return message.stored_at if said is None else said.at


def key_of(subject: str) -> str:
    """Return the key of a session as text: of ten thousand no objects are made."""
    _, agent, user, thread, _ = subject.split(".", 4)
    return f"{user}:{agent}:{thread}"
