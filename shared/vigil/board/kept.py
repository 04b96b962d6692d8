"""What the board is the truth of: entities that change by compare-and-set (LOOPS L-15, L-16).

A kind is a row of data: its record, where it stands (`board.{agent}.{owner}.{kind}.{id}`), and how
many of an owner's may be open. Each revision tells who made it, why, and what led to it; the newest
64 of an entity are kept, without a limit of age. Whoever changes one says which revision they read,
and is refused if there is a newer one. Nothing is deleted: an end is a revision, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime
from typing import Final, Generic, TypeVar

import msgspec

from ..bus.bus import Bus, Message
from ..contracts import BoardEntry, Change, Grant, GrantUse, decode_board, encode
from ..errors import InvalidInput, Unavailable, WrongLastSequence
from ..subjects import board_of
from .entries import STREAM, newest

E = TypeVar("E", Grant, GrantUse)
TRIES_MAX: Final = 20
"""Others of an owner's that may be made between a look and a write."""


class BoundReached(InvalidInput):
    """There are as many open ones of that kind as an owner may have."""


class KeptKind(msgspec.Struct, Generic[E], frozen=True):
    """One kind of entity that is kept on the board."""

    record: type[E]
    open_max: int
    """Of an owner's."""
    is_open: Callable[[E, datetime], bool]
    """Whether one counts."""

    @property
    def name(self) -> str:
        return str(self.record.__struct_config__.tag)


GRANTS: Final = KeptKind(
    Grant,
    200,
    lambda one, now: (
        one.revoked_at is None and not (one.expires_at is not None and one.expires_at <= now)
    ),
)
USES: Final = KeptKind(GrantUse, 200, lambda _one, _now: True)


class Revision(msgspec.Struct, Generic[E], frozen=True, kw_only=True):
    """An entity as one revision has it."""

    entity: E
    number: int
    """The place of its entry; a change names it."""
    at: datetime
    change: Change


class KeptBoard(Generic[E]):
    """The entities of one kind: ``KeptBoard(bus, GRANTS)``."""

    def __init__(self, bus: Bus, kind: KeptKind[E]) -> None:
        self._bus = bus
        self._kind: KeptKind[E] = kind

    async def last(self, user: str, agent: str = "*") -> int:
        """Return the place of the newest entry of theirs; 0: there is none. Raises: Unavailable."""
        found = await self._bus.get_last(STREAM, board_of(user, self._kind.name, agent=agent))
        return 0 if found is None else found.seq

    async def all(self, user: str | None, agent: str = "*") -> list[Revision[E]]:
        """Return all of a person's (None: everybody's), those that changed last at the end.

        Raises:
            Unavailable: the broker is away, or reading took too long.
        """
        where = board_of(user, self._kind.name, agent=agent)
        found: dict[str, Revision[E]] = {}
        async with aclosing(newest(self._bus, where)) as entries:
            async for message in entries:
                revision = self._read(message)
                if revision is not None:
                    found.pop(message.subject, None)
                    found[message.subject] = revision
        return list(found.values())

    async def find(self, user: str | None, id_: str) -> Revision[E] | None:
        """Return the newest revision of an entity, if `user` has it (None: whoever has it).

        Args:
            id_: checked: it becomes a part of a subject.
        """
        where = f"{board_of(user, self._kind.name).removesuffix('*')}{id_}"
        message = await self._bus.get_last(STREAM, where)
        return None if message is None else self._read(message)

    async def create(
        self, make: Callable[[list[E]], E], user: str, change: Change, now: datetime
    ) -> Revision[E]:
        """Store a new entity; one of the same id that is there is returned instead.

        It's stored only if nobody made or changed another of the owner's since they were read, so
        the bound holds whoever writes at the same moment.

        Args:
            make: gets the owner's open ones, and returns the new one.

        Raises:
            BoundReached: the owner has as many as they may.
            Unavailable: the broker is away, or others write there all the time.
        """
        among = board_of(user, self._kind.name)
        for _ in range(TRIES_MAX):
            last = await self.last(user)
            there = await self.all(user)
            open_ = [one.entity for one in there if self._kind.is_open(one.entity, now)]
            entity = make(open_)
            same = next((one for one in there if one.entity.id == entity.id), None)
            if same is not None:
                return same
            if len(open_) >= self._kind.open_max:
                raise BoundReached(
                    self._kind.name, f"{user} has {len(open_)} already; end one that isn't needed"
                )
            try:
                return await self._put(entity, change, now, last, among)
            except WrongLastSequence:
                continue
        raise Unavailable(f"{among}: others write there all the time")

    async def replace(self, expect: int, entity: E, change: Change, now: datetime) -> Revision[E]:
        """Store what an entity is now.

        Args:
            expect: the revision that was read; 0: there is none yet.

        Raises:
            WrongLastSequence: there is a newer one.
        """
        return await self._put(entity, change, now, expect, None)

    async def _put(
        self, entity: E, change: Change, now: datetime, expect: int, among: str | None
    ) -> Revision[E]:
        subject = f"board.{entity.agent}.{entity.owner}.{self._kind.name}.{entity.id}"
        entry = BoardEntry(entity=entity, turn_seq=0, at=now, change=change)
        ack = await self._bus.publish(subject, encode(entry), expect=expect, expect_subject=among)
        return Revision(entity=entity, number=ack.seq, at=now, change=change)

    def _read(self, message: Message) -> Revision[E] | None:
        """Return what an entry holds; None: it can't be read, so nothing follows from it."""
        try:
            entry = decode_board(message.data)
        except InvalidInput:
            return None
        entity = entry.entity
        if not isinstance(entity, self._kind.record):
            return None
        place = f"board.{entity.agent}.{entity.owner}.{self._kind.name}.{entity.id}"
        if place != message.subject:
            return None
        return Revision(
            entity=entity, number=message.seq, at=entry.at, change=entry.change or Change(by="")
        )
