"""Rows by which minds look at goals, kept while goals change (LOOPS L-1)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final

import pytest

from services.scheduler.minds import MindKeeper, row_id
from tests.support.goal_records import ANN, goal_of
from tests.support.pauses import pauses
from tests.support.races import overtake
from tests.support.stack import Stack
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.contracts import Change
from vigil.contracts.board import OnceSchedule
from vigil.settings.config import Config
from vigil.settings.sections import Autonomy

PATIENCE_S: Final = 20.0


async def test_a_goal_that_is_set_as_another_is_planned_is_looked_at_in_its_time(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-1: it waited for the next change of any goal, which may never come."""
    bus, admin, clock = await bare.bus("scheduler"), await bare.bus("admin"), StoppedClock()
    config = Config(autonomy=Autonomy(enabled=True))
    context: Any = SimpleNamespace(bus=bus, clock=clock, settings=SimpleNamespace(config=config))
    pause: Any = SimpleNamespace(zone_of=lambda _: "UTC", is_erasing=lambda _: False)
    keeper = MindKeeper(context, pause)
    goals, rows, now = KeptBoard(admin, GOALS), KeptBoard(admin, ROWS), clock.now()
    at = dict.fromkeys(("created_at", "moved_at", "last_checked_at"), now)
    soon = goal_of(id="b" * 32, check_interval_s=60, **at)

    async def learn() -> None:
        """Have the keeper know of another goal before it has stored what follows from the first."""
        await goals.replace(0, soon, Change(by="ann"), now)
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while soon.id not in keeper._known[ANN]:
                await asyncio.sleep(next(pause_s))

    async def planned() -> datetime | None:
        found = await rows.find([ANN], row_id(ANN))
        schedule = None if found is None else found.entity.schedule
        return schedule.at if isinstance(schedule, OnceSchedule) else None

    overtake(monkeypatch, bus, learn)
    await goals.replace(0, goal_of(check_interval_s=86_400, **at), Change(by="ann"), now)
    task = asyncio.create_task(keeper.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while (found := await planned()) is None or (found - now).total_seconds() != 60:
                await asyncio.sleep(next(pause_s))
    finally:
        task.cancel()
        await asyncio.wait((task,))
