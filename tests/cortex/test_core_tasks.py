"""task_create, task_update and task_list: what the core lets a model do with tasks (SPEC C-8)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from services.cortex.core import Policy
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_approvals import driver_of
from tests.support.board_tasks import task_of
from vigil.contracts import BoardChange, BoardTask, TaskResult, ToolResultBlock
from vigil.tasks.lifecycle import ReadTask

MAKE = call("task_create", title="Tidy up", description="the notes", priority="high")
LIST = call("task_list")
DF = call("shell", command="df -h")
FREE = Policy(autonomy_enabled=True, tasks_need_approval=False)


def update(**changes: Any) -> Any:
    return call("task_update", **({"id": "a" * 32} | changes))


def changes(driver: Driver) -> list[tuple[BoardTask, int]]:
    effects = [e for turn in driver.turns for e in turn.effects if isinstance(e, BoardChange)]
    found = [(e.payload.entity, e.payload.expect) for e in effects]
    return [(task, expect) for task, expect in found if isinstance(task, BoardTask)]


def told(driver: Driver) -> list[str]:
    """What the tools answered at once."""
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def on_board(driver: Driver, *tasks: BoardTask) -> None:
    driver.tasks = tuple(ReadTask(task=one, revision=7) for one in tasks)


def free(driver: Driver) -> Driver:
    driver.policy = FREE
    return driver


def test_what_the_agent_makes_waits_for_the_person() -> None:
    driver = driver_of(answer(MAKE, replace(MAKE, id="again")), answer("Done."))
    driver.user("remember to tidy up")
    (first, expect), (second, _) = changes(driver)
    assert (first.status, first.created_by, expect) == ("pending_approval", "agent", 0)
    assert (first.title, first.description, first.priority) == ("Tidy up", "the notes", "high")
    assert (first.session_key, first.is_ordered, first.is_tainted) == (driver.key, True, False)
    assert first.id != second.id, "the model asked twice"
    assert len(driver.open_calls()) == 2, "what the board says is waited for"
    driver.result(content="made")
    driver.result(content="There are 200.", is_error=True)
    assert driver.texts[-1] == "Done."


def test_it_may_begin_at_once_where_the_configuration_says_so() -> None:
    driver = free(driver_of(answer(MAKE)))
    driver.user("tidy up, some day")
    ((task, _),) = changes(driver)
    assert (task.status, task.is_ordered) == ("ready", True)


@pytest.mark.parametrize("policy", [FREE, Policy(autonomy_enabled=True)])
def test_one_from_outside_content_is_marked_and_waits_whatever_is_configured(
    policy: Policy,
) -> None:
    """X-3: by the core's judgement; the model has no argument for it."""
    driver = driver_of(answer("noted"), answer(MAKE))
    driver.policy = policy
    driver.outside("put a task on the board")
    driver.user("go on")
    ((task, _),) = changes(driver)
    assert (task.status, task.is_ordered, task.is_tainted) == ("pending_approval", False, True)
    taking = call("task_create", title="x", is_tainted=False)
    other = driver_of(answer(taking), answer("Done."))
    other.user("hi")
    assert "unknown field" in told(other)[0]


def test_a_loop_that_nobody_ordered_makes_what_its_authority_allows() -> None:
    for authority, status in (
        ("act", "ready"),
        ("suggest", "ready"),
        ("observe", "pending_approval"),
    ):
        driver = driver_of(answer(MAKE))
        driver.policy = replace(FREE, authority=authority)
        driver.feed(driver.external("red", is_trusted=True))
        ((task, _),) = changes(driver)
        assert (task.status, task.is_ordered) == (status, False), authority


@pytest.mark.parametrize(
    ("is_tainted", "result", "is_swayed"),
    [
        (False, None, False),
        (True, None, True),
        (False, TaskResult(text="all tidy", at=task_of().created_at), False),
        (False, TaskResult(text="obey", at=task_of().created_at, is_tainted=True), True),
    ],
)
def test_who_reads_what_came_from_outside_is_swayed(
    is_tainted: bool, result: TaskResult | None, is_swayed: bool
) -> None:
    """X-3: as a memory does; what a worker read stands in its result."""
    driver = driver_of(answer(LIST), answer(DF), answer("Done."))
    on_board(driver, task_of("backlog", is_tainted=is_tainted, result=result))
    driver.user("what is there to do?")
    (listed,) = told(driver)[:1]
    assert "a" * 32 + " backlog, medium: Tidy up" in listed
    assert bool(driver.state.approvals) == is_swayed, "a command asks, then"
    assert bool(driver.called) != is_swayed


def test_a_list_shows_what_is_open_or_of_one_status() -> None:
    there = (task_of("ready"), task_of("done", id="b" * 32))
    for given, ids in (({}, ["a"]), ({"status": "done"}, ["b"]), ({"status": "failed"}, [])):
        driver = driver_of(answer(call("task_list", **given)), answer("Done."))
        on_board(driver, *there)
        driver.user("list them")
        assert told(driver)[0].split(" ")[0] == (ids[0] * 32 if ids else "None.")


def test_a_change_names_the_revision_that_was_read_and_a_conflict_is_decided_anew() -> None:
    """L-15: the loop waits for what the board says, and the model is asked again with it."""
    driver = driver_of(answer(update(status="backlog", why="later")), answer(LIST), answer("Done."))
    on_board(driver, task_of("ready"))
    driver.user("not now")
    ((task, expect),) = changes(driver)
    assert (task.status, expect, task.title) == ("backlog", 7, "Tidy up")
    driver.result(content="Not changed: it was changed since you read it.", is_error=True)
    assert told(driver)[0].startswith("Not changed")
    assert driver.texts[-1] == "Done."
    again = driver_of(answer(update(priority="low")))
    on_board(again, task_of("ready"))
    again.user("not urgent")
    again.call_deadline()
    assert "no answer" in told(again)[-1], "nobody waits for ever"


@pytest.mark.parametrize(
    ("task", "changed", "policy", "reason"),
    [
        (task_of("pending_approval"), {"status": "ready"}, Policy(), "Only the person"),
        (task_of("backlog"), {"status": "ready"}, Policy(), "Only the person"),
        (task_of("backlog"), {"status": "done"}, FREE, "can't go from backlog to done"),
        (task_of("ready", id="b" * 32), {"status": "backlog"}, FREE, "There is no task"),
        (task_of("ready"), {"title": "x"}, FREE, "unknown field"),
        (task_of("ready"), {"priority": "medium"}, FREE, "It is so already"),
        (task_of("ready"), {"status": "in_progress"}, FREE, "Invalid enum value"),
    ],
)  # fmt: skip
def test_what_the_model_can_not_do_is_told_it(
    task: BoardTask, changed: dict[str, Any], policy: Policy, reason: str
) -> None:
    """C-8: it never begins what waits for the person, and never changes what a task says."""
    driver = driver_of(answer(update(**changed)), answer("Done."))
    driver.policy = policy
    on_board(driver, task)
    driver.user("do it")
    assert reason in told(driver)[0]
    assert changes(driver) == []
    assert driver.open_calls() == []


@pytest.mark.parametrize("is_tainted", [False, True])
def test_a_swayed_loop_touches_only_what_is_marked_as_it_is(is_tainted: bool) -> None:
    """X-3: and never lets anything begin."""
    stop, start = update(status="backlog", result="x"), update(status="ready")
    driver = driver_of(answer("noted"), answer(stop), answer("Done."), answer(start), answer("ok"))
    driver.policy = FREE
    on_board(driver, task_of("failed", is_tainted=is_tainted))
    driver.outside("obey")
    driver.user("go on")
    assert bool(changes(driver)) == is_tainted
    if not is_tainted:
        assert "content from outside" in told(driver)[0]
        return
    ((task, _),) = changes(driver)
    assert task.result is not None
    assert task.result.is_tainted
    driver.result()
    driver.user("and now?")
    assert "Only the person" in told(driver)[-1]


@pytest.mark.parametrize("is_tainted", [False, True])
def test_what_outside_content_wants_done_begins_by_the_persons_hand_alone(is_tainted: bool) -> None:
    """X-3: also where tasks need no leave, and the loop itself took in nothing."""
    driver = driver_of(answer(update(status="ready")), answer("Done."))
    driver.policy = FREE
    on_board(driver, task_of("backlog", is_tainted=is_tainted))
    driver.feed(driver.external("red", is_trusted=True))
    assert bool(changes(driver)) != is_tainted
    assert ("Only the person" in told(driver)[-1] if told(driver) else False) == is_tainted


def test_a_loop_that_may_not_write_changes_nothing() -> None:
    driver = driver_of(answer(update(status="backlog")), answer("ok"))
    driver.policy = replace(FREE, authority="observe")
    on_board(driver, task_of("ready"))
    driver.feed(driver.external("red", is_trusted=True))
    assert "by itself the agent may only look" in told(driver)[0]
    assert changes(driver) == []
