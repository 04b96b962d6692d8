"""What the mind may do without asking for a goal, and whose words it tells (LOOPS L-8, L-17)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from tests.cortex.driver import START, Driver
from tests.cortex.test_core_approvals import driver_of
from tests.support.goal_records import goal_of
from tests.support.grants import grant_of
from tests.support.scripted_model import say
from vigil.contracts import BoardChange, BoardTask, CallTool, TellPerson, Tick
from vigil.contracts.events import TickPayload
from vigil.goals.lifecycle import ReadGoal
from vigil.grants.rule import Standing
from vigil.minds import mind_of
from vigil.subjects import Scope

GOAL: Final = "a" * 32
OTHER: Final = "b" * 32


def mind(*decisions: dict[str, Any], owner: str = "ann", homes: tuple[str, ...] = ()) -> Driver:
    """A mind whose first look decides that, with a goal that is due and a grant for it."""
    sure = {"because": "it helps", "confidence": 0.9}
    said = [say(json.dumps({"decisions": [sure | one for one in decisions]}))]
    nothing = say(json.dumps({"decisions": [sure | {"type": "no_action"}]}))
    driver = driver_of()
    driver.policy = Policy(
        profile=profile_of("mind"), has_mind=True, authority="suggest", homes=homes
    )
    driver.brain = lambda _: said.pop(0) if said else nothing
    driver.key = str(mind_of(Scope("vigil", owner)))
    goal = goal_of(id=GOAL, owner=owner, created_at=START, moved_at=START)
    driver.goals = (ReadGoal(goal=goal, revision=7),)
    grant = grant_of(goal=GOAL, holds_for_outside=True, owner=owner)
    driver.grants = (Standing(grant=grant, revision=7),)
    return driver


def tick(driver: Driver) -> None:
    driver.feed(Tick(payload=TickPayload(slot=driver.now), **driver._envelope()))


def effects(driver: Driver, kind: type[Any]) -> list[Any]:
    return [e for turn in driver.turns for e in turn.effects if isinstance(e, kind)]


def call(goal: str) -> dict[str, Any]:
    return {"type": "tool_call", "tool": "shell", "input": '{"command": "df -h"}', "goal": goal}


@pytest.mark.parametrize(("goal", "runs"), [(GOAL, True), (OTHER, False), ("", False)])
def test_a_grant_for_a_goal_holds_in_the_look_that_is_at_it(goal: str, runs: bool) -> None:
    """L-8: the executor is told which goal it was, to look again."""
    driver = mind(call(goal), {"type": "create_task", "title": "Tidy up", "goal": goal})
    tick(driver)
    calls = effects(driver, CallTool)
    assert [one.payload.grant_goal for one in calls] == ([GOAL] if runs else [])
    assert bool(driver.board) != runs, "else it asks"
    made = [one.payload.entity for one in effects(driver, BoardChange)]
    tasks = [one.goal for one in made if isinstance(one, BoardTask)]
    assert tasks == [GOAL if runs else ""], "its worker acts for that goal, too"


def test_what_a_look_keeps_for_a_goal_comes_from_that_goal() -> None:
    """L-20: and from nothing that a model names."""
    save = {"type": "tool_call", "tool": "memory_save", "input": '{"content": "It is full."}'}
    driver = mind(save | {"goal": GOAL}, save | {"goal": OTHER})
    tick(driver)
    sources = [one.payload.source for one in effects(driver, CallTool)]
    assert sources == [f"goal:{GOAL}", "cortex:mind"]


def test_naming_a_goal_in_a_look_at_what_came_from_outside_gives_no_leave() -> None:
    """X-3: what a look is at is the core's to say, and never what a model says that it is for."""
    driver = mind(call(GOAL))
    driver.outside(f"df -h for goal {GOAL}, please")
    assert effects(driver, CallTool) == []
    assert [one.is_tainted for one in driver.board] == [True]


def test_a_members_home_isnt_told_the_words_of_what_a_teams_mind_set() -> None:
    """L-17: what one member says to their team orders nothing in another's own conversation."""
    words = "do: shell"
    for owner, homes in (("ann", ()), ("team", ("ann:vigil:main", "ben:vigil:main"))):
        driver = mind({"type": "create_goal", "description": words}, owner=owner, homes=homes)
        driver.feed(driver.external("red", is_trusted=True))
        (task_id,) = [id_ for id_, one in driver.state.tasks.items() if one.tool == "goal_create"]
        driver.result(task_id, content=f"{'c' * 32} is active, its priority is 3 of 5.")
        told = [one.payload.told for one in effects(driver, TellPerson)]
        assert len(told) == max(len(homes), 1)
        for one in told:
            assert "stop g" in one.text
            assert (words in one.text) == (owner == "ann")
