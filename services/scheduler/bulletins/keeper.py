"""Keeps the bulletin of each person and agent up to date, for one term (SPEC C-2).

It's looked at the start, every hour, and as soon as something is forgotten: what somebody asked to
forget stays in no prompt. What says the same as before isn't stored again, so a quiet night leaves
no trace. If something can't be read, the bulletin before stays as it is.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final

import structlog

from vigil.board.kept import BULLETINS, GOALS, TASKS, KeptBoard
from vigil.contracts import Change
from vigil.contracts.board import BoardBulletin
from vigil.contracts.board.bulletin import CURRENT
from vigil.errors import VigilError, WrongLastSequence
from vigil.memory.client import MemoryClient
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.questions import LIMIT_MAX, Sort
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import ANYBODY, Scope, signals_of

from ..promotion import PauseSwitch
from ..warmth import WarmGate
from .report import BulletinInput, report

log = structlog.get_logger("vigil.scheduler")

STREAM: Final = "SIGNALS"
EVERY: Final = timedelta(hours=1)
AGAIN: Final = timedelta(seconds=30)
"""How soon it's looked again after something couldn't be read."""
LOOK_S: Final = 5.0
"""How long a person who just began waits for their first one, at most."""
CHANGE: Final = Change(by="scheduler", why="what it is made of changed")


class BulletinKeeper:
    """Writes bulletins."""

    def __init__(
        self, context: Context, pause: PauseSwitch, gate: WarmGate, known: AbstractSet[Scope]
    ) -> None:
        """`known`: for whom there is to be one; it grows."""
        self._bus = context.bus
        self._clock = context.clock
        self._pause = pause
        self._gate = gate
        self._known = known
        self._memory = MemoryClient(context.bus)
        self._board = KeptBoard(context.bus, BULLETINS)
        self._tasks = KeptBoard(context.bus, TASKS)
        self._goals = KeptBoard(context.bus, GOALS)
        self._due: dict[Scope, datetime] = {}
        self._hurried: set[Scope] = set()
        """Who had something forgotten: memory may be a moment behind, so it's looked twice."""

    async def run(self) -> None:
        """Keep them up, until cancelled. Raises: Unavailable, BusError."""
        await self._gate.opened.wait()
        where = signals_of(ANYBODY.owner, kind="memory.forgotten")
        last = await self._bus.get_last(STREAM, where)
        follower = await self._bus.follow(STREAM, [where], 1 if last is None else last.seq + 1)
        try:
            while True:
                await self._look()
                message = await follower.next_within(LOOK_S)
                if message is not None:
                    _, agent, owner, *_ = message.subject.split(".")
                    self._hurried.add(Scope(agent, owner))
        finally:
            await follower.close()

    async def _look(self) -> None:
        now = self._clock.now()
        self._hurried &= self._known
        for whose in tuple(self._known):
            is_hurried = whose in self._hurried
            is_due = is_hurried or self._due.get(whose, now) <= now
            if not is_due or self._pause.is_erasing(whose.owner):
                continue
            self._due[whose] = now + (AGAIN if is_hurried else EVERY)
            self._hurried.discard(whose)
            try:
                await self._bring_up(whose, now)
            except VigilError as error:
                self._due[whose] = now + AGAIN
                told = {"owner": whose.owner, "error": str(error)}
                log.info("not now", action="scheduler.bulletin", **told)

    async def _bring_up(self, whose: Scope, now: datetime) -> None:
        """Store what a bulletin is now, if it's another. Raises: VigilError."""
        trace.current.set(trace.new())
        found = await self._board.find([whose], CURRENT)
        said = report(await self._read(whose), now)
        if whose not in self._known:  # erased meanwhile
            return
        if found is not None and found.entity.text == said.text:
            return
        bulletin = BoardBulletin(
            owner=whose.owner,
            agent=whose.agent,
            text=said.text,
            short=said.short,
            is_empty=said.is_empty,
            made_at=now,
        )
        try:
            await self._board.replace(0 if found is None else found.number, bulletin, CHANGE, now)
        except WrongLastSequence:
            log.info("written before", action="scheduler.bulletin", owner=whose.owner)

    async def _read(self, whose: Scope) -> BulletinInput:
        tasks, goals = await self._tasks.all(whose), await self._goals.all(whose)
        recent, important = await self._list(whose, "recent"), await self._list(whose, "importance")
        return BulletinInput(
            recent=recent.memories,
            important=important.memories,
            tasks=[one.entity for one in tasks],
            goals=[one.entity for one in goals],
        )

    async def _list(self, whose: Scope, sort: Sort) -> Listed:
        found: Listed = await self._memory.ask(whose, ListMemories(sort=sort, limit=LIMIT_MAX))
        return found
