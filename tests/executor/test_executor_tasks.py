"""Tasks changed for a loop: by compare-and-set, once, and answered whatever comes (LOOPS L-15)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from services.executor.board.tasks import report_of
from tests.executor.test_executor_effects import effect_of
from tests.support.board_tasks import AT, find, history, keep, task_of
from tests.support.executing import session_of
from tests.support.memories import KEY
from tests.support.stack import Stack
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.contracts import (
    BoardChange,
    BoardChangePayload,
    BoardTask,
    Change,
    TaskResult,
    ToolResultEvent,
    decode_dead_letter,
)
from vigil.subjects import SessionKey

OTHER = SessionKey("ann", "vigil", "t2")


def change(
    task: BoardTask, expect: int = 0, ordinal: int = 1, key: SessionKey = KEY, why: str = ""
) -> BoardChange:
    payload = BoardChangePayload(entity=task, expect=expect, why=why)
    made: BoardChange = effect_of(BoardChange, payload, ordinal, key)
    return made


async def told(session: Any, *effects: BoardChange) -> list[ToolResultEvent]:
    """What the loop was told of each."""
    await session.turn(*effects)
    return [await session.result(one) for one in effects]


async def test_a_task_is_made_and_changed_once_however_often_it_is_asked_for(stack: Stack) -> None:
    session, task = await session_of(stack), task_of("pending_approval")
    made = change(task)
    (first,) = await told(session, made)
    assert "vigil tasks approve aaaaaaaa" in first.payload.content
    found = await find(session.bus, task)
    assert found.entity == replace(task, moved_at=found.at)
    assert (found.change.by, found.change.cause) == ("vigil", made.id)
    moved = change(replace(task, status="backlog"), found.number, 2, why="later")
    (second,) = await told(session, moved)
    assert "is backlog" in second.payload.content
    by_person = await find(session.bus, task)
    board = KeptBoard(session.bus, TASKS)
    await board.replace(by_person.number, replace(by_person.entity, priority="low"),
                        Change(by="ann"), by_person.at)  # fmt: skip
    await session.turn(made, moved)  # a repeat of both, after the person changed it
    await session.all_acked()
    assert await history(session.bus, task) == ["pending_approval", "backlog", "backlog"]
    answers = await session.results()
    assert {one.payload.is_error for one in answers.values()} == {False}


async def test_of_two_that_read_the_same_one_is_told_of_the_other(stack: Stack) -> None:
    session, other = await session_of(stack), await session_of(stack, OTHER)
    task = task_of("ready")
    read = await keep(session.bus, task)
    first = change(replace(task, status="backlog"), read.number)
    second = change(replace(task, priority="critical"), read.number, key=OTHER)
    (one,), (two,) = await asyncio.gather(told(session, first), told(other, second))
    errors = [event.payload.content for event in (one, two) if event.payload.is_error]
    assert len(errors) == 1
    assert "it was changed since you read it" in errors[0]
    assert len(await history(session.bus, task)) == 2


async def test_the_bound_holds_for_what_is_made_and_what_comes_back(stack: Stack) -> None:
    """L-16: a clear word for the model; nothing is stored."""
    session, task = await session_of(stack), task_of("done", id="d" * 32)
    ended = await keep(session.bus, task)
    others = (task_of(id=f"{number:032x}") for number in range(200))
    await asyncio.gather(*(keep(session.bus, one) for one in others))
    new, again = (
        change(task_of(id="e" * 32)),
        change(replace(task, status="ready"), ended.number, 2),
    )
    for event in await told(session, new, again):
        assert event.payload.is_error
        assert "200 already" in event.payload.content
    assert await history(session.bus, task) == ["done"]


async def test_outside_content_takes_half_of_the_room_at_most(stack: Stack) -> None:
    """X-3: whoever has a model make tasks without end leaves the person room for theirs."""
    session = await session_of(stack)
    marked = (task_of("backlog", id=f"{n:032x}", is_tainted=True) for n in range(100))
    await asyncio.gather(*(keep(session.bus, one) for one in marked))
    wanted = {"is_ordered": False, "is_tainted": True}
    refused, own = await told(
        session, change(task_of(id="e" * 32, **wanted)), change(task_of(id="d" * 32), ordinal=2)
    )
    assert "100 that content from outside had a part in" in refused.payload.content
    assert not own.payload.is_error


async def test_somebody_elses_is_none(stack: Stack) -> None:
    """X-4: a turn names no other person's, nor another agent's."""
    session = await session_of(stack)
    await session.turn(change(task_of(owner="bob")))
    await session.turn(change(task_of(agent="other"), ordinal=2))
    await session.all_acked()
    assert await session.bus.get_last("BOARD", "board.>") is None
    letters = [decode_dead_letter(one.data) for one in await session.bus.read("DEAD", ["dead.>"])]
    assert [letter.cause for letter in letters] == [
        f"task: {'a' * 32} is not of the same person and agent"
    ] * 2


@pytest.mark.parametrize(
    ("user", "is_tainted", "quotes"),
    [("ann", False, True), ("ann", True, False), ("team", False, False)],
)
def test_what_a_home_is_told_quotes_only_what_is_the_persons_own(
    user: str, is_tainted: bool, quotes: bool
) -> None:
    """ADR 23, L-17: neither content from outside, nor what another member wrote."""
    result = TaskResult(text="CANARY", at=AT, by="x", is_tainted=is_tainted)
    task = task_of("done", owner=user, result=result)
    told = report_of(SessionKey(user, "vigil", "_worker-1f"), task)
    assert ("CANARY" in told.text) == ("Tidy up" in told.text) == bool(told.title) == quotes
    assert "vigil tasks show aaaaaaaa" in told.text or quotes
    assert not told.is_tainted
