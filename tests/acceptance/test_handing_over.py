"""Agents of one person hand each other tasks and messages, each with its own memory (issue 39)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.cortex.core import Policy
from services.executor.board.changes import is_handed
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_approvals import driver_of
from tests.cortex.test_core_tasks import on_board
from tests.support.agent import Agent, ask
from tests.support.board_tasks import task_of
from tests.support.memories import Asking, until
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.contracts import BoardChange, BoardChangePayload, BoardTask, TellPerson
from vigil.contracts.events import AGENT_MESSAGE
from vigil.memory.operations.list import ListMemories
from vigil.subjects import Scope, SessionKey

FREE = Policy(autonomy_enabled=True, tasks_need_approval=False, others=("coach",))


def effects(driver: Driver, kind: type[Any]) -> list[Any]:
    return [one.payload for turn in driver.turns for one in turn.effects if isinstance(one, kind)]


def handed(driver: Driver) -> BoardTask:
    (change,) = effects(driver, BoardChange)
    assert isinstance(change.entity, BoardTask)
    return change.entity


def driver_with(*answers: Any) -> Driver:
    driver = driver_of(*answers)
    driver.policy = FREE
    return driver


GIVE = call("task_create", title="Plan a run", agent="coach")


def test_a_task_is_another_agents_and_begins_where_the_person_ordered_it() -> None:
    driver = driver_with(answer(GIVE), answer("Given."))
    driver.user("have coach plan a run")
    task = handed(driver)
    assert (task.agent, task.status, task.is_ordered) == ("coach", "ready", True)
    assert (task.session_key, task.is_tainted) == (driver.key, False)


def test_what_comes_from_outside_is_marked_there_and_waits() -> None:
    """Sway travels along: the other agent's worker is swayed as this one was."""
    driver = driver_with(answer(GIVE), answer("Given."))
    driver.outside("please have coach plan a run")
    task = handed(driver)
    assert (task.agent, task.status) == ("coach", "pending_approval")
    assert (task.is_ordered, task.is_tainted) == (False, True)


def test_nobody_else_is_handed_anything() -> None:
    wrong = call("task_create", title="x", agent="nobody")
    told = call("tell_agent", agent="nobody", text="x")
    driver = driver_with(answer(wrong, told), answer("No."))
    driver.user("do it")
    assert not effects(driver, BoardChange)
    assert not effects(driver, TellPerson)


@pytest.mark.parametrize("is_tainted", [False, True])
def test_what_is_told_is_marked_as_it_was_here_and_sways_there(is_tainted: bool) -> None:
    """X-3: the other agent asks before it runs a command, if a stranger had a part in it."""
    read, told = call("task_list"), call("tell_agent", agent="coach", text="Run the cleanup.")
    here = driver_with(answer(read), answer(told), answer("Told."))
    on_board(here, task_of("backlog", is_tainted=is_tainted))
    here.user("tell coach what there is to do")
    (effect,) = effects(here, TellPerson)
    payload = effect.told
    assert (effect.home, bool(payload.is_tainted)) == ("ann:coach:main", is_tainted)

    there = driver_with(answer(call("memory_save", content="x")), answer("I see."))
    there.told(payload.text, what=payload.what, is_tainted=payload.is_tainted)
    (loop,) = {bool(turn.state.loop.taint) for turn in there.turns if turn.state.loop}
    assert loop == is_tainted


def test_agents_do_not_talk_with_each_other_without_end() -> None:
    """What an agent is told is asked about, and it can't tell anybody in turn."""
    driver = driver_with(answer(call("tell_agent", agent="coach", text="again")), answer("I see."))
    driver.told("Ann runs on Sunday.", what=AGENT_MESSAGE)
    assert driver.texts == ["I see."]
    assert not effects(driver, TellPerson)


async def test_agents_of_a_person_hand_over_a_task_and_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is the other agent's, its end is told where it was asked for, and what is told
    opens an exchange there; memories stay with each."""
    Agent().install(monkeypatch)
    services = ("cortex", "scheduler", "memory", "executor", "delivery")
    sections: dict[str, Any] = {
        "agents": {"coach": {}, "desk": {"kind": "team", "members": ["ann"]}},
        "tasks": {"approval": False},
        "autonomy": {"enabled": True, "cooldown_ms": 0, "max_consecutive": 100},
    }
    async with running_stack(tmp_path, services, **sections) as stack:
        ann, coach = (
            await Talk.open(stack, "ann:vigil:main"),
            await Talk.open(stack, "ann:coach:main"),
        )
        give = ("task_create", {"title": "Plan a run", "agent": "coach"})
        keep = ("memory_save", {"content": "Ann runs on Sunday."})
        tell = ("tell_agent", {"agent": "coach", "text": "Ann has a race in May."})
        await ann.ended(await ann.say(ask(give, keep, tell)))
        await ann.until(lambda: any("Plan a run" in text and "done" in text for text in ann.texts))
        await coach.until(lambda: coach.texts)
        admin = await stack.bus("admin")
        (task,) = [one.entity for one in await KeptBoard(admin, TASKS).all(Scope("coach", "ann"))]
        assert (task.status, task.worker.split(":")[1]) == ("done", "coach")
        assert not any("Plan a run" in text for text in coach.texts), "told where it was asked for"
        rows = [block for turn in coach.turns for row in turn.rows for block in row.blocks]
        assert any("Ann has a race in May." in str(block) for block in rows)
        mine, theirs = Asking(admin, Scope("vigil", "ann")), Asking(admin, Scope("coach", "ann"))

        async def is_kept() -> bool:
            return bool((await mine.ask(ListMemories())).memories)

        await until(is_kept, "the memory")
        assert not (await theirs.ask(ListMemories())).memories
        for talk in (ann, coach):
            await talk.close()


@pytest.mark.parametrize(
    ("given", "expect", "is_taken"),
    [
        ({}, 0, True),
        ({}, 3, False),
        ({"owner": "ben"}, 0, False),
        ({"agent": "desk"}, 0, False),
        ({"session_key": "ann:coach:t1"}, 0, False),
    ],
)
def test_no_task_of_a_team_or_of_somebody_else_is_made(
    given: dict[str, Any], expect: int, is_taken: bool
) -> None:
    """The executor's own look at what a turn asks for, whatever made the turn."""
    key = SessionKey("ann", "vigil", "t1")
    task = task_of(**{"owner": "ann", "agent": "coach", "session_key": str(key)} | given)
    payload = BoardChangePayload(entity=task, expect=expect)
    assert is_handed(key, payload, {"desk": ("ann",)}) == is_taken
