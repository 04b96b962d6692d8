"""Keeps the rows that the system makes as the configuration wants them (`system_rows`)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import structlog
from msgspec.structs import replace

from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, TimetableRow
from vigil.errors import VigilError
from vigil.runtime import Context
from vigil.subjects import ANYBODY, Scope, SessionKey, signals_of
from vigil.teams import holding

from ..promotion import PauseSwitch
from . import kinds, system_rows

log = structlog.get_logger("vigil.scheduler")

SIGNALS: Final = "SIGNALS"
AGAIN_S: Final = 5.0
"""How soon that is tried again which couldn't be done."""
BY: Final = "scheduler"
WHY: Final = "as configured"


class RowKeeper:
    """Makes and changes those rows, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._pause = pause
        self._board = KeptBoard(context.bus, ROWS)
        self._done: set[Scope] = set()
        self._known: set[Scope] = set()
        """Who has talked with an agent."""

    async def run(self) -> None:
        """Do so for all who have talked with an agent, and for whoever begins to, until
        cancelled. Raises: Unavailable, BusError."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_settings())
            group.create_task(self._follow_people())

    async def _follow_settings(self) -> None:
        """Do all anew whenever they are changed."""
        settings = self._pause.cortex
        while True:
            if self._pause.cortex == settings:
                await self._pause.changed_again()
                self._forget_erased()
                continue
            settings = self._pause.cortex
            self._done.clear()
            for whose in tuple(self._known):
                await self._keep(whose)

    def _forget_erased(self) -> None:
        """Forget who is being erased, or what is kept for all would name them again afterwards."""
        erased = {whose for whose in self._known if self._pause.is_erasing(whose.owner)}
        self._known -= erased
        self._done -= erased

    async def _follow_people(self) -> None:
        people = (self._config.person, *self._config.people.values())
        for thread in {person.home_thread for person in people}:
            homes = SessionKey(ANYBODY.owner, ANYBODY.agent, thread).in_user
            for subject in await self._bus.subjects("SESSIONS", homes):
                await self._keep(SessionKey.of_subject(subject).scope)
        begun = signals_of(ANYBODY.owner, kind="session.started")
        follower = await self._bus.follow(SIGNALS, [begun], 1)
        try:
            async for message in follower:
                _, agent, owner, *_, thread = message.subject.split(".")
                if not thread.startswith("_"):
                    await self._keep(Scope(agent, owner))
        finally:
            await follower.close()

    async def _keep(self, whose: Scope) -> None:
        """Have a person's rows as they are to be; what can't be done is tried again."""
        if self._pause.is_erasing(whose.owner):
            return
        self._known.add(whose)
        while whose in self._known and whose not in self._done:
            settings = self._pause.cortex
            try:
                await self._bring_up(whose)
                self._done.add(whose)
            except VigilError as error:
                log.info("not now", action="scheduler.rows", owner=whose.owner, error=str(error))
                await asyncio.sleep(AGAIN_S)
            if self._pause.cortex != settings:
                # What held before may have been stored behind what another task of ours stored.
                self._done.discard(whose)

    async def _bring_up(self, whose: Scope) -> None:
        """Raises: VigilError; WrongLastSequence among it, somebody moves a row to another zone."""
        now = self._clock.now()
        zone = self._pause.zone_of(whose.owner)
        config = replace(self._config, cortex=self._pause.cortex)
        wanted = kinds.of_system(config, whose, zone, now)
        for row in wanted:
            await self._bring_up_row(whose, row, now)
        await self._end_others(whose, {row.id for row in wanted}, now)

    async def _end_others(self, whose: Scope, wanted: set[str], now: datetime) -> None:
        """Turn off what the configuration no longer has, such as a mailbox that was removed. Others
        have rows of the system, too: when a mind looks is its loop's to say."""
        for found in await self._board.all(whose):
            row = found.entity
            is_ours = row.is_of_system and kinds.kind_of(row.work).rows is not None
            if is_ours and row.is_enabled and row.id not in wanted:
                await self._bring_up_row(whose, replace(row, is_enabled=False), now)

    async def _bring_up_row(self, whose: Scope, wanted: TimetableRow, now: datetime) -> None:
        found = await self._board.find([whose], wanted.id)
        change, among = Change(by=BY, why=WHY), holding(whose.owner, whose.agent)
        if found is None:
            if wanted.is_enabled:
                await self._board.create(lambda _: wanted, among, change, now)
            return
        row = system_rows.as_wanted(found.entity, wanted, now)
        if row is not None:
            await self._board.change(found, row, change, now)
