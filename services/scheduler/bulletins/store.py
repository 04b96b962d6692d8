"""Reads what bulletins are made of, and writes them down as far as no model is needed (SPEC C-2).

A bulletin is replaced only by who read the one before: what somebody wrote meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil.board.kept import BULLETINS, KeptBoard, Revision
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Bus
from vigil.contracts import Change
from vigil.contracts.board import BoardBulletin
from vigil.contracts.board.bulletin import CURRENT
from vigil.errors import NotFound
from vigil.memory.client import MemoryClient
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.questions import LIMIT_MAX, Sort
from vigil.settings.cortex import BulletinSection
from vigil.subjects import Scope, token_of
from vigil.timetable.cycles import KIND as CYCLE
from vigil.timetable.log import SlotLog

from .report import BulletinInput, BulletinText, report

CHANGE: Final = Change(by="scheduler", why="what it is made of changed")


class BroughtUp(NamedTuple):
    """What a bulletin would say, and what is there now."""

    said: BulletinText
    current: Revision[BoardBulletin]
    read_at: datetime

    @property
    def is_worded(self) -> bool:
        """Whether its text is a model's, of what is known now."""
        there = self.current.entity
        return there.made_by == "model" and there.digest == self.said.digest


class BulletinStore:
    """Brings bulletins up to date."""

    def __init__(self, bus: Bus) -> None:
        self._memory = MemoryClient(bus)
        self._board = KeptBoard(bus, BULLETINS)
        self._tasks = KeptBoard(bus, TASKS)
        self._goals = KeptBoard(bus, GOALS)
        self._slots = SlotLog(bus)

    async def bring_up(
        self,
        whose: Scope,
        now: datetime,
        shown: BulletinSection,
        *,
        keeps_text: bool,
        forgotten_at: datetime | None = None,
        stands: Callable[[], bool] = lambda: True,
    ) -> BroughtUp:
        """Store what a bulletin is now, if it's another.

        Args:
            keeps_text: whether a model's text of before stays until there is a new one; else what
                is known is listed.
            forgotten_at: something was forgotten by then: what it said before is shown no more.
            stands: whether there is still such a person, asked before it's stored.

        Raises:
            NotFound: there is none.
            WrongLastSequence: somebody wrote it at the same moment.
            VigilError: what it is made of can't be read now.
        """
        found = await self._board.find([whose], CURRENT)
        said = report(await self._read(whose), now, shown)
        bulletin = _kept(found.entity, said) if found and keeps_text else None
        bulletin = bulletin or _listed(whose, said, now)
        if found is not None:
            is_same_text = bulletin.text == found.entity.text
            made_at = found.entity.made_at if is_same_text else bulletin.made_at
            cuts = [at for at in (found.entity.shown_since, forgotten_at) if at is not None]
            bulletin = replace(bulletin, made_at=made_at, shown_since=max(cuts, default=None))
            if bulletin == found.entity:
                return BroughtUp(said, found, now)
        if not stands():
            raise NotFound(f"{whose.owner}: nobody is called so any more")
        number = 0 if found is None else found.number
        stored = await self._board.replace(number, bulletin, CHANGE, now)
        return BroughtUp(said, stored, now)

    async def find(self, whose: Scope) -> BoardBulletin | None:
        """Return the bulletin as it is. Raises: Unavailable."""
        found = await self._board.find([whose], CURRENT)
        return None if found is None else found.entity

    async def _read(self, whose: Scope) -> BulletinInput:
        tasks, goals = await self._tasks.all(whose), await self._goals.all(whose)
        recent, important = await self._list(whose, "recent"), await self._list(whose, "importance")
        cycles = await self._slots.last(whose, token_of("row", CYCLE, whose.agent, whose.owner))
        return BulletinInput(
            recent=recent.memories,
            important=important.memories,
            tasks=[one.entity for one in tasks],
            goals=[one.entity for one in goals],
            cycles=cycles.ledger.cycles,
        )

    async def _list(self, whose: Scope, sort: Sort) -> Listed:
        found: Listed = await self._memory.ask(whose, ListMemories(sort=sort, limit=LIMIT_MAX))
        return found


def _listed(whose: Scope, said: BulletinText, now: datetime) -> BoardBulletin:
    return BoardBulletin(
        owner=whose.owner,
        agent=whose.agent,
        text=said.text,
        short=said.short,
        status=said.status,
        is_empty=said.is_empty,
        made_at=now,
        digest=said.digest,
    )


def _kept(there: BoardBulletin, said: BulletinText) -> BoardBulletin | None:
    """Return a model's text with how things stand now; None: there is none to be kept."""
    if there.made_by != "model" or not said.material:
        return None
    return replace(there, status=said.status, short=said.short)
