"""Days on which nobody does anything, in a home where nothing goes as it should: what a model is
asked, and what is stored (SPEC G-1, S-7, J-4)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from msgspec.structs import replace

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from services.executor.board import changes
from services.scheduler import minds
from services.scheduler.timetable.kinds.autonomy import FIRST_AFTER
from tests.acceptance.test_mind import NOTHING, Looks
from tests.support.agent import ask, follow_up
from tests.support.goal_records import goal_of
from tests.support.pauses import pauses
from tests.support.progress import going_on
from tests.support.scripted_model import say
from tests.support.world import World, running_world
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.bus.batches import last_sequence
from vigil.contracts import Change, Row, ToolResultBlock, ToolUseBlock, Usage
from vigil.contracts.board import BoardGoal, MindWork, OnceSchedule
from vigil.errors import InvalidInput
from vigil.goals.check import fitted
from vigil.subjects import Scope, SessionKey

TICK_S: Final = 30
STEP_S: Final = 600.0
STEPS: Final = 36
IDLE_STEP_S: Final = 1800.0
IDLE_STEPS: Final = 48
SETTLED_S: Final = 0.15
RECORDS_MAX: Final = 3000
BOUNDS: Final = {
    "ann mind": 11 + 4 + 2,  # a goal that can't be taken down; one part of a whole that is archived
    "bob mind": 2 * (11 + 4),  # a look that fails asks twice
    "cid channel": 2 * (10 + 7 + 24),  # a follow-up that plans the next, and says nothing
    "dan worker": 2 * (20 + 24),  # a task that makes the next
    "dan mind": 20 + 24,  # each that ended is told
    "dan autonomy": 4 * 48,  # and news for a cycle, of which no report can be read
    "eve cron": 2 * 8 * 4,  # two times a day, each begun again, its model tried again each time
    "fay autonomy": 4 * 16,  # a watcher that reaches nobody is looked at each hour at most
}
"""Calls of models within that day, by whose sessions of what kind they were."""
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


class Home:
    """What its models answer while nobody does anything: each does what costs most."""

    def __init__(self, world: World) -> None:
        self.asked: Counter[str] = Counter()
        """How often, by whose session of what kind."""
        self._behave = world.agent.behave
        world.agent.behave = self._answer

    async def _answer(self, request: ModelRequest) -> ModelAnswer:
        key = SessionKey.parse(request.session_key)
        self.asked[f"{key.user} {key.kind}"] += 1
        rows = request.rows
        if key.user == "bob" or key.kind in ("autonomy", "bulletin"):
            return say("Nothing to do!")
        if key.user == "eve" and key.is_system:
            raise ModelError("its provider is overloaded", is_retryable=True)
        if key.kind == "mind":
            return say(json.dumps({"decisions": [NOTHING]}))
        if key.kind == "worker":
            again = {"title": "Once more", "description": "and make the next task"}
            return say("Done.") if _is_result(rows[-1]) else _call("task_create", again)
        if key.user == "cid" and any(row.source == "timer" for row in rows):
            again = {"timer_id": "a", "delay_seconds": 1, "reason": "once more"}
            return say("") if _is_result(rows[-1]) else _call("schedule_followup", again)
        return await self._behave(request)  # type: ignore[misc, no-any-return]


def _is_result(row: Row) -> bool:
    return any(isinstance(block, ToolResultBlock) for block in row.blocks)


def _call(tool: str, arguments: dict[str, Any]) -> ModelAnswer:
    use = ToolUseBlock(id=f"call_{uuid4().hex}", name=tool, input=arguments)
    usage = Usage(model="agent", input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=(use,), stop_reason="tool_use", usage=usage)


async def settled(world: World) -> None:
    """Wait until nothing is stored any more, for as long as what polls needs to look again."""
    before = -1
    while (stored := await stored_by(world)) != before:
        before = stored
        await world.at_rest()
        await asyncio.sleep(SETTLED_S)


async def stored_by(world: World) -> int:
    layout = await world.admin.layout()
    streams = (*layout.streams("SESSIONS"), "SYSTEM", "BOARD", "SLOTS", "MEMORIES")
    return sum([await last_sequence(world.admin, one, 30.0) for one in streams])


async def test_a_home_where_nothing_goes_as_it_should_costs_little_while_nobody_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of everything that asks a model by itself, in the state in which it might for good."""
    mind = {"enabled": True, "tick_seconds": TICK_S}
    agents = {"vigil": {"authority": "act"}}
    async with running_world(
        tmp_path, monkeypatch, has_hands=True, mind=mind, agents=agents,
        tasks={"approval": False}, cortex=dict.fromkeys(
            ("autonomy_enabled", "bulletin_synthesis", "summary_rewriting"), True
        ),
    ) as world:  # fmt: skip
        home = Home(world)
        names = ("ann", "bob", "cid", "dan", "eve", "fay")
        people = {
            name: await world.person(f"{name}:vigil:main", has_socket=False) for name in names
        }
        ann, bob, cid, dan, eve, fay = people.values()
        for person in people.values():
            await person.exchange("Hello")
        await stuck_goal(world, "ann", check_interval_s=3600)
        whole = (await ann.http.post("/api/goals", json={"description": "Move house"})).json()
        part = {"description": "Pack", "parent": whole["id"], "check_interval_secs": 86_400}
        for one in (part, part | {"description": "Sell the piano"}):
            made = await ann.http.post("/api/goals", json=one)
            assert made.status_code == 201, made.text
        paused = await ann.http.patch(f"/api/goals/{made.json()['id']}", json={"status": "paused"})
        assert paused.status_code == 200, paused.text
        ended = await ann.http.patch(f"/api/goals/{whole['id']}", json={"status": "archived"})
        assert ended.status_code == 200, ended.text
        await bob.http.post("/api/goals", json={"description": "Ship it"})
        await cid.exchange(ask(follow_up("a", 1, reason="look again")))
        task = {"title": "Begin", "description": "and make the next task"}
        assert (await dan.http.post("/api/tasks", json=task)).status_code == 201
        row = {"name": "brief", "prompt": "What is new?", "interval_s": 43_200}
        assert (await eve.http.post("/api/cron", json=row)).status_code == 201
        watch = {"name": "shop", "prompt": "What changed?", "interval_s": 3600}
        watch |= {"watch": {"kind": "url", "url": "https://shop.invalid/prices"}}
        assert (await fay.http.post("/api/cron", json=watch)).status_code == 201
        await world.advance(FIRST_AFTER.total_seconds() + 1)  # cycles are due then, each half hour
        await settled(world)
        begun, stored = Counter(home.asked), await stored_by(world)
        for _ in range(IDLE_STEPS):
            await world.advance(IDLE_STEP_S)
            await settled(world)
        asked = home.asked - begun
        for whose, bound in BOUNDS.items():
            assert asked[whose] <= bound, asked
        assert asked.total() <= sum(BOUNDS.values()), f"nobody else is asked: {asked}"
        assert asked.keys() <= BOUNDS.keys(), asked
        assert await stored_by(world) - stored <= RECORDS_MAX
        assert all(asked[whose] for whose in ("ann mind", "bob mind", "cid channel", "dan worker"))


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
