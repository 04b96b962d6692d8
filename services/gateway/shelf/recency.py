"""When somebody last wrote in each conversation of an owner, known without reading all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from datetime import datetime
from typing import Final, NamedTuple

from vigil.bus.bus import Bus, Message
from vigil.past import places, words
from vigil.subjects import Scope

OWNERS_MAX: Final = 64
"""Owners of whom it is kept in memory."""


class LastWord(NamedTuple):
    """What somebody wrote last in a conversation: when, and its sequence in its log. What was
    imported was written when it was said."""

    written_at: datetime
    seq: int


class Recency:
    """When somebody last wrote in each conversation of an owner.

    The broker is asked only for what came since the last look.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: OrderedDict[Scope, tuple[dict[str, LastWord], dict[str, int]]] = OrderedDict()
        self._locks: defaultdict[Scope, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, whose: Scope) -> dict[str, LastWord]:
        """Return it by the key of the conversation, the newest last; some may be deleted by now."""
        where = places.by_person(whose)
        async with self._locks[whose]:
            at, seen = self._known.pop(whose, ({}, {}))
            came: list[tuple[LastWord, str]] = []
            for stream in (await self._bus.layout()).streams("SESSIONS"):
                # 0: the last of each subject, as none of that stream is known yet.
                after = seen.get(stream)
                start = 0 if after is None else after + 1
                for message in await self._bus.read(stream, [where], start):
                    written = LastWord(_written_at(message), message.seq)
                    came.append((written, key_of(message.subject)))
                    seen[stream] = max(seen.get(stream, 0), message.seq)
            latest = next(reversed(at.values()), None)
            for written, key in sorted(came):
                if key not in at or at[key] < written:
                    at.pop(key, None)
                    at[key] = written
            if latest is not None and came and min(came)[0] < latest:
                at = dict(sorted(at.items(), key=lambda pair: pair[1]))
            self._known[whose] = at, seen
            if len(self._known) > OWNERS_MAX:
                gone, _ = self._known.popitem(last=False)
                self._locks.pop(gone, None)
            return at


def _written_at(message: Message) -> datetime:
    said = words.by_person(message) if places.is_past(message.subject) else None
    return message.stored_at if said is None else said.at


def key_of(subject: str) -> str:
    """Return the key of a session as text: of ten thousand no objects are made."""
    _, agent, user, thread, _ = subject.split(".", 4)
    return f"{user}:{agent}:{thread}"
