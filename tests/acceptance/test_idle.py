"""Days on which nobody does anything, in a home where nothing goes as it should: what a model is
asked, and what is stored (SPEC G-1, S-7, J-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from services.executor.board import changes
from services.scheduler import minds
from tests.acceptance.test_mind import Looks
from tests.support.goal_records import goal_of
from tests.support.pauses import pauses
from tests.support.progress import going_on
from tests.support.world import World, running_world
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.contracts import Change
from vigil.contracts.board import BoardGoal, MindWork, OnceSchedule
from vigil.errors import InvalidInput
from vigil.goals.check import fitted
from vigil.subjects import Scope

TICK_S: Final = 30
STEP_S: Final = 600.0
STEPS: Final = 36
STUCK: Final = "Tidy up"
"""A goal that the board refuses each change of, for good, as some were until 9d8f45e6."""


@pytest.fixture(autouse=True)
def refusing_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of minds are looked at so often, too: a test would wait as long for each move."""
    monkeypatch.setattr(minds, "POLL_S", 0.05)
    monkeypatch.setattr(changes, "goals_of", lambda _: replace(GOALS, fit=_refuse))


def _refuse(goal: BoardGoal, others: Iterable[BoardGoal]) -> BoardGoal:
    if goal.description == STUCK:
        raise InvalidInput("parent", "is archived")
    return fitted(goal, others)


async def until_planned(world: World, owner: str) -> None:
    """Wait until a mind has nothing to look at now: its next look is ahead."""
    rows = KeptBoard(world.admin, ROWS)
    async with going_on(world.admin):
        for pause_s in pauses():
            found = [one.entity for one in await rows.all(Scope("vigil", owner))]
            mine = [one for one in found if isinstance(one.work, MindWork) and one.is_enabled]
            at = [one.schedule.at for one in mine if isinstance(one.schedule, OnceSchedule)]
            if at and min(at) > world.clock.now():
                return
            await asyncio.sleep(pause_s)


async def stuck_goal(world: World, owner: str, **of: Any) -> None:
    now = world.clock.now()
    at = dict.fromkeys(("created_at", "moved_at"), now)
    goal = goal_of(owner=owner, description=STUCK, **at, **of)
    await KeptBoard(world.admin, GOALS).replace(0, goal, Change(by=owner), now)


async def test_a_goal_that_the_board_never_takes_down_is_looked_at_less_and_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six hours of looks each ten minutes: without a bound there are as many as steps."""
    mind = {"enabled": True, "tick_seconds": TICK_S}
    async with running_world(tmp_path, monkeypatch, has_hands=True, mind=mind) as world:
        ann = await world.person("ann:vigil:main", has_socket=False)
        looks = Looks(world, "ann")
        await stuck_goal(world, "ann")
        await looks.until(1)
        for _ in range(STEPS):
            await until_planned(world, "ann")
            await world.advance(STEP_S)
        await until_planned(world, "ann")
        assert 8 <= len(looks.reports) <= 11
        assert (await looks.notes()).count("look_left") == len(looks.reports) - 1
        (told,) = [one for one in ann.talk.said if "can't put down that I did" in one.text]
        assert STUCK in told.text
        look = told.text.partition("vigil why ")[2].partition("`")[0]
        story = (await ann.http.get(f"/api/why/{look}")).json()
        assert "A goal can't be taken down: g" in str(story)
