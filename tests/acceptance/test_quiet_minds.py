"""A quiet week: 50 minds whose goals aren't due take no call, no look and no write (SPEC G-1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from services.scheduler.minds import MindKeeper
from services.scheduler.timetable.clock import TimetableClock
from tests.support.goal_records import goal_of
from tests.support.pauses import pauses
from tests.support.world import World, running_world
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.contracts import Change
from vigil.subjects import ANYBODY

OWNERS: Final = tuple(f"u{number}" for number in range(50))
MIND: Final = {"enabled": True}
YEAR_S: Final = 31_536_000
QUARTER_DAY_S: Final = 21_600.0
STREAMS: Final = ("BOARD", "SLOTS", "SYSTEM", "SIGNALS", "SESSIONS", "TIMERS", "MEMORIES")
PATIENCE_S: Final = 30.0


async def test_a_quiet_week_of_50_minds_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: the week goes by in quarters of a day, at each of which the scheduler
    looks at its clock."""
    woken = Counter[str]()
    _count(monkeypatch, MindKeeper, "_keep", woken, lambda given: given[0].owner)
    _count(monkeypatch, TimetableClock, "_visit", woken, lambda given: given[1].row.owner)
    async with running_world(tmp_path, monkeypatch, has_hands=True, mind=MIND) as world:
        now, board = world.clock.now(), KeptBoard(world.admin, GOALS)
        for number, owner in enumerate(OWNERS):
            at = dict.fromkeys(("created_at", "moved_at", "last_checked_at"), now)
            goal = goal_of(id=f"{number:032x}", owner=owner, check_interval_s=YEAR_S, **at)
            await board.replace(0, goal, Change(by=owner), now)
        await _until_each_has_a_row(world)
        ends = {name: await _end(world, name) for name in STREAMS}
        assert all(woken[owner] for owner in OWNERS), "when they were made"
        woken.clear()
        for _ in range(28):
            await world.advance(QUARTER_DAY_S)
        assert {name: await _stored(world, name, ends[name]) for name in STREAMS} == dict.fromkeys(
            STREAMS, 0
        )
        assert [woken[owner] for owner in OWNERS] == [0] * len(OWNERS)
        assert world.agent.requests == []


def _count(
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    name: str,
    counts: Counter[str],
    owner_of: Callable[[tuple[Any, ...]], str],
) -> None:
    """Count the calls of a method, by whose they are."""
    method = getattr(kind, name)

    async def counted(self: Any, *given: Any) -> None:
        counts[owner_of(given)] += 1
        await method(self, *given)

    monkeypatch.setattr(kind, name, counted)


async def _until_each_has_a_row(world: World) -> None:
    """Wait until each mind has its row, and the scheduler has seen them all."""
    rows = KeptBoard(world.admin, ROWS)
    async with asyncio.timeout(PATIENCE_S):
        for pause_s in pauses():
            found = Counter(one.entity.owner for one in await rows.all(ANYBODY))
            if all(found[owner] == 1 for owner in OWNERS):
                break
            await asyncio.sleep(pause_s)
    await world.advance(QUARTER_DAY_S)


async def _end(world: World, stream: str) -> int:
    info = await world.admin.api(f"STREAM.INFO.{stream}", {})
    return int(info["state"]["last_seq"])


async def _stored(world: World, stream: str, after: int) -> int:
    """Return how many messages of the 50 owners came after that one; not those that made the
    scheduler look at its clock, which are nobody's."""
    found = await world.admin.read(stream, [">"], after + 1)
    return sum(message.subject.split(".")[2] in OWNERS for message in found)
