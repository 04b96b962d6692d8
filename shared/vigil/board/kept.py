"""What the board is the truth of: entities that change by compare-and-set (LOOPS L-15, L-16).

One stands at `board.{agent}.{owner}.{kind}.{id}`. Each revision tells who made it, why, and what
led to it; the newest 64 of an entity are kept, without a limit of age. Whoever changes one says
which revision they read, and is refused if there is a newer one. Nothing is deleted: an end is a
revision, too. Only of a log the newest take the places of the oldest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from typing import Final, Generic, cast

from ..bus.bus import Bus, Message
from ..contracts import BoardEntry, Change, decode_board, encode
from ..contracts.board import KeptEntity
from ..errors import InvalidInput, Unavailable, WrongLastSequence
from ..reading.read_once import once
from ..subjects import Scope, board_of
from ..teams import holding
from .entries import STREAM, last_of, newest
from .kind import BoundReached, E, KeptKind, Revision
from .recorded import BULLETINS, CIRCUITS, FACTS, ROWS

__all__ = [
    "BULLETINS",
    "CIRCUITS",
    "FACTS",
    "ROWS",
    "BoundReached",
    "E",
    "KeptBoard",
    "KeptKind",
    "Revision",
]
TRIES_MAX: Final = 20
"""Others of an owner's that may be made between a look and a write, and lessons of others."""


class KeptBoard(Generic[E]):
    """The entities of one kind: ``KeptBoard(bus, ROWS)``."""

    def __init__(self, bus: Bus, kind: KeptKind[E]) -> None:
        self._bus = bus
        self._kind: KeptKind[E] = kind

    async def last(self, whose: Scope) -> int:
        """Return the place of the newest entry of theirs; 0: there is none. Raises: Unavailable."""
        found = await self._bus.get_last(STREAM, board_of(whose, self._kind.name))
        return 0 if found is None else found.seq

    async def all(self, whose: Scope) -> list[Revision[E]]:
        """Return all of an owner's, those that changed last at the end.

        Raises:
            Unavailable: the broker is away, or reading took too long.
        """
        where = board_of(whose, self._kind.name)
        return list(await once(where, lambda: self._all(where)))

    async def _all(self, where: str) -> tuple[Revision[E], ...]:
        found: dict[str, Revision[E]] = {}
        async with aclosing(newest(self._bus, where)) as entries:
            async for message in entries:
                revision = self.read(message)
                if revision is not None:
                    found.pop(message.subject, None)
                    found[message.subject] = revision
        return tuple(found.values())

    async def find(self, whose: Iterable[Scope], id_: str) -> Revision[E] | None:
        """Return the newest revision of an entity, if one of them has it.

        Args:
            id_: checked: it becomes a part of a subject.
        """
        if self._kind.place is not None:
            there = [one for part in whose for one in await self.all(part)]
            return next((one for one in there if one.entity.id == id_), None)
        message = await last_of(self._bus, whose, self._kind.name, id_)
        return None if message is None else self.read(message)

    async def history(self, one: Revision[E], after: int = 0) -> list[Revision[E]]:
        """Return the revisions of an entity that are kept, the oldest first; at most 64.

        Args:
            after: only those behind that place.

        Raises:
            Unavailable: the broker is away.
        """
        found: list[Revision[E]] = []
        subject, seq = self._place(one.entity), after
        while seq < one.number:
            message = await self._bus.get_next(STREAM, subject, seq + 1)
            if message is None:
                break
            seq = message.seq
            revision = self.read(message)
            if revision is not None and revision.entity.id == one.entity.id:
                found.append(revision)
        return found

    async def create(
        self, make: Callable[[list[E]], E], whose: Scope, change: Change, now: datetime
    ) -> Revision[E]:
        """Store a new entity; one of the same id that is there is returned instead.

        It's stored only if nobody made or changed another of the owner's since they were read, so
        the bound holds whoever writes at the same moment.

        Args:
            make: gets the owner's open ones, and returns the new one.

        Raises:
            BoundReached: the owner has as many as they may.
            InvalidInput: it doesn't fit among the owner's others.
            Unavailable: the broker is away, or others write there all the time.
        """
        for _ in range(TRIES_MAX):
            last, there = await self.last(whose), await self.all(whose)
            entity = make([one.entity for one in there if self._kind.is_open(one.entity, now)])
            same = next((one for one in there if one.entity.id == entity.id), None)
            if same is not None:
                return same
            try:
                return await self._admit(None, entity, there, change, now, last)
            except WrongLastSequence:
                continue
        raise self._too_busy(whose)

    async def add(self, lesson: E, change: Change, now: datetime) -> Revision[E]:
        """Store a new entity, as `create` does; where entities are learned, add a lesson to what is
        known of what it is about, and return what that is then.

        A repeat of one that led to a revision is found by the cause of the change, and by what the
        kind's `merge` makes of it: neither teaches twice.

        Raises:
            BoundReached: as many are known as an owner may have, and this is none of them.
            InvalidInput: it can't be kept.
            Unavailable: the broker is away, or others write there all the time.
        """
        merge, among = self._kind.merge, holding(lesson.owner, lesson.agent)
        if merge is None:
            return await self.create(lambda _: lesson, among, change, now)
        alone, whose = merge(None, lesson), Scope(lesson.agent, lesson.owner)
        for _ in range(TRIES_MAX):
            found = await self.find([whose], lesson.id)
            if found is None:
                made = await self.create(lambda _: alone, among, change, now)
                if made.entity == alone:
                    return made
                continue  # somebody else made it meanwhile
            if change.cause:
                history = await self.history(found)
                before = next((one for one in history if one.change.cause == change.cause), None)
                if before is not None:
                    return before
            entity = merge(found.entity, lesson)
            if entity == found.entity:
                return found
            try:
                return await self.change(found, entity, change, now)
            except WrongLastSequence:
                continue
        raise self._too_busy(whose)

    async def change(
        self, found: Revision[E], entity: E, change: Change, now: datetime
    ) -> Revision[E]:
        """Store what an entity that was read is now; one that had ended needs room to be open.

        Raises:
            WrongLastSequence: there is a newer revision than `found`.
            InvalidInput: it doesn't fit among the owner's others.
            BoundReached, Unavailable: as `create`.
        """
        if self._kind.fit is None and not self._is_opened(found.entity, entity, now):
            return await self.replace(found.number, entity, change, now)
        whose = holding(entity.owner, entity.agent)
        for _ in range(TRIES_MAX):
            last, there = await self.last(whose), await self.all(whose)
            if not any(one.number == found.number for one in there):
                raise WrongLastSequence(self._place(entity))
            try:
                return await self._admit(found.entity, entity, there, change, now, last)
            except WrongLastSequence:
                continue
        raise self._too_busy(whose)

    async def revise(
        self,
        whose: Iterable[Scope],
        id_: str,
        revised: Callable[[E], E],
        change: Change,
        now: datetime,
    ) -> Revision[E] | None:
        """Store what an entity becomes, whatever comes between; return what is there then.

        Args:
            revised: what it becomes of what it is; the same: nothing is stored.

        Returns:
            None: none of them has it.

        Raises:
            InvalidInput, BoundReached, Unavailable: as `change`.
        """
        whose = tuple(whose)
        for _ in range(TRIES_MAX):
            found = await self.find(whose, id_)
            if found is None:
                return None
            entity = revised(found.entity)
            if entity == found.entity:
                return found
            try:
                return await self.change(found, entity, change, now)
            except WrongLastSequence:
                continue
        raise Unavailable(f"{id_}: others change it all the time")

    def _is_opened(self, before: E | None, entity: E, now: datetime) -> bool:
        was_open = before is not None and self._kind.is_open(before, now)
        return self._kind.is_open(entity, now) and not was_open

    async def _admit(
        self,
        before: E | None,
        entity: E,
        there: list[Revision[E]],
        change: Change,
        now: datetime,
        last: int,
    ) -> Revision[E]:
        """Store an entity, if there is room for it and `last` is the owner's newest entry."""
        kind, whose = self._kind, holding(entity.owner, entity.agent)
        count = sum(kind.is_open(one.entity, now) for one in there)
        if self._is_opened(before, entity, now) and count >= kind.open_max:
            reason = f"{entity.owner} has {count} already; end one that isn't needed"
            raise BoundReached(kind.name, reason)
        if kind.fit is not None:
            entity = kind.fit(entity, [one.entity for one in there])
        return await self._put(entity, change, now, last, board_of(whose, kind.name))

    def _too_busy(self, whose: Scope) -> Unavailable:
        where = board_of(whose, self._kind.name)
        return Unavailable(f"{where}: others write there all the time")

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
        subject = self._place(entity)
        entry = BoardEntry(entity=cast(KeptEntity, entity), turn_seq=0, at=now, change=change)
        ack = await self._bus.publish(subject, encode(entry), expect=expect, expect_subject=among)
        return Revision(entity=entity, number=ack.seq, at=now, change=change)

    def _place(self, entity: E) -> str:
        place = entity.id if self._kind.place is None else self._kind.place(entity)
        return f"board.{entity.agent}.{entity.owner}.{self._kind.name}.{place}"

    def read(self, message: Message) -> Revision[E] | None:
        """Return what an entry holds; None: it can't be read, so nothing follows from it."""
        try:
            entry = decode_board(message.data)
        except InvalidInput:
            return None
        entity = entry.entity
        if not isinstance(entity, self._kind.record):
            return None
        if self._place(entity) != message.subject:
            return None
        return Revision(
            entity=entity, number=message.seq, at=entry.at, change=entry.change or Change(by="")
        )
