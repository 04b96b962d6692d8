"""Goals and preferences changed for a loop: once, and answered whatever comes (LOOPS L-15)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tests.executor.test_executor_effects import effect_of
from tests.support.executing import session_of
from tests.support.gateway import Gate, assert_problem
from tests.support.goal_records import ANN, goal_of, lesson_of
from tests.support.memories import KEY
from tests.support.stack import Stack, running_stack
from vigil.board.kept import KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.contracts import BoardChange, BoardChangePayload, Change
from vigil.contracts.board import BoardGoal, BoardPreference
from vigil.preferences.check import id_of
from vigil.preferences.confidence import first as first_of

PERSON: Final = Change(by="ann")
CONFIRMED: Final = {"is_confirmed": True}


def change(entity: BoardGoal | BoardPreference, ordinal: int = 1, **fields: Any) -> BoardChange:
    payload = BoardChangePayload(entity=entity, **fields)
    made: BoardChange = effect_of(BoardChange, payload, ordinal, KEY)
    return made


async def told(session: Any, *effects: BoardChange) -> list[str]:
    """What the loop was told of each."""
    await session.turn(*effects)
    events = [await session.result(one) for one in effects]
    return [f"{'! ' * one.payload.is_error}{one.payload.content}" for one in events]


async def test_a_goal_is_set_changed_and_split_once_however_often_it_is_asked(
    stack: Stack,
) -> None:
    session, goal = await session_of(stack), goal_of()
    board = KeptBoard(session.bus, GOALS)
    made = change(goal)
    assert await told(session, made) == [f"{goal.id} is active, its priority is 3 of 5."]
    (found,) = await board.all(ANN)
    assert (found.change.by, found.change.cause) == ("vigil", made.id)
    moved = change(replace(found.entity, status="paused"), 2, expect=found.number, why="away")
    assert "vigil goals resume aaaaaaaa" in (await told(session, moved))[0]
    (found,) = await board.all(ANN)
    parts = tuple(goal_of(id=letter * 32, parent=goal.id, description=letter) for letter in "bc")
    split = change(found.entity, 3, expect=found.number, parts=parts)
    late = change(replace(found.entity, priority=5), 4, expect=1)
    assert len((await told(session, split))[0].splitlines()) == 2
    assert "is paused now. Look again" in (await told(session, late))[0]
    await board.replace(found.number, replace(found.entity, priority=1), PERSON, found.at)
    await session.turn(made, moved, split)  # a repeat, after the person changed it
    await session.all_acked()
    whole, *_ = sorted(await board.all(ANN), key=lambda one: one.entity.id)
    assert [one.entity.priority for one in await board.history(whole)] == [3, 3, 1]
    assert {one.entity.parent for one in await board.all(ANN)} == {"", goal.id}
    assert len(await board.all(ANN)) == 3


async def test_what_nobody_waits_for_holds_whatever_came_between(stack: Stack) -> None:
    """G-6: who was told 'Stopped' has it stopped, though it was looked at meanwhile; and a look is
    noted of a goal that its person changed, and nothing else of it."""
    session, goal = await session_of(stack), goal_of()
    board = KeptBoard(session.bus, GOALS)
    made = await board.replace(0, goal, PERSON, goal.created_at)
    looked_at = goal.created_at + timedelta(hours=1)
    look = change(
        replace(goal, last_checked_at=looked_at),
        expect=made.number,
        why="looked at",
        is_silent=True,
    )
    paused = replace(goal, status="paused", priority=1)
    await board.replace(made.number, paused, PERSON, goal.created_at)
    await session.turn(look, look)
    await session.all_acked()
    (found,) = await board.all(ANN)
    assert found.entity == replace(paused, last_checked_at=looked_at)
    stop = change(
        replace(goal, status="archived"), 2, expect=made.number, why="stop", is_silent=True
    )
    await session.turn(stop, look)
    await session.all_acked()
    (found,) = await board.all(ANN)
    assert (found.entity.status, found.change.why) == ("archived", "stop")
    await session.turn(stop, look)  # a repeat
    await session.all_acked()
    assert (await board.all(ANN))[0].number == found.number


async def test_there_are_fifty_and_no_goal_is_a_part_of_itself(stack: Stack) -> None:
    """G-2: a clear word for the model; nothing is stored, of a split no part."""
    session = await session_of(stack)
    board = KeptBoard(session.bus, GOALS)
    goals = [goal_of(id=f"{number:032x}") for number in range(49)]
    await asyncio.gather(*(board.replace(0, one, PERSON, one.created_at) for one in goals))
    (first,) = [one for one in await board.all(ANN) if one.entity.id == goals[0].id]
    parts = tuple(goal_of(id=letter * 32) for letter in "bc")
    under = change(replace(first.entity, parent=first.entity.id), expect=first.number)
    split = change(first.entity, 2, expect=first.number, parts=parts)
    last, one_more = change(goal_of(id="d" * 32), 3), change(goal_of(id="e" * 32), 4)
    answers = await told(session, under, split, last, one_more)
    assert answers[0].startswith("! Not changed: parent: it would be a part of itself")
    assert answers[1].startswith("! Not changed: goal: ann has 49 of 50")
    assert answers[2] == f"{'d' * 32} is active, its priority is 3 of 5."
    assert answers[3].startswith("! Not made: goal: ann has 50 already")
    assert len(await board.all(ANN)) == 50


async def test_a_lesson_is_added_once_to_what_the_person_may_have_changed(stack: Stack) -> None:
    """G-3: by what is known when it is added; whoever repeats it teaches nothing."""
    session = await session_of(stack)
    board = KeptBoard(session.bus, PREFERENCES)
    first, again = change(lesson_of(cause="e1")), change(lesson_of(cause="e2"), 2)
    assert await told(session, first, again) == [
        "answers: known as it stands, tentative (0.30).",
        "answers: known as it stands, tentative (0.47).",
    ]
    await session.turn(first, again)
    other = change(lesson_of(cause="e2", value="long"), 3)
    said = change(lesson_of(cause="e3", value="long", how="corrected"), 4)
    seen = change(lesson_of(cause="e4", value="long"), 5)
    answers = await told(session, said, seen)
    assert answers == ["answers: known not that way, conviction (0.90)."] * 2
    (found,) = await board.all(ANN)
    assert (found.entity.is_negative, found.entity.confidence) == (True, 0.9)
    assert [one.entity.confidence for one in await board.history(found)] == [0.3, 0.475, 0.9]
    assert other.id not in {one.change.cause for one in await board.history(found)}


async def test_somebody_elses_is_none(stack: Stack) -> None:
    """X-4: a turn names no other person's, nor another agent's, not even among parts."""
    session = await session_of(stack)
    await session.turn(change(goal_of(owner="bob")), change(lesson_of(agent="other"), 2))
    await session.turn(change(goal_of(), 3, expect=1, parts=(goal_of(id="b" * 32, owner="bob"),)))
    await session.all_acked()
    assert await session.bus.get_last("BOARD", "board.>") is None


async def test_how_many_goals_and_how_fast_preferences_fade_is_set(tmp_path: Path) -> None:
    """Seed 003, max_goals and preference_decay_days: for the person and for the agent alike."""
    sections: dict[str, Any] = {"goals": {"max": 52}, "preferences": {"decay_days": 3}}
    async with running_stack(tmp_path, ("executor", "gateway"), **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            ann, session = await gate.person("ann"), await session_of(stack)
            board, now = KeptBoard(session.bus, GOALS), datetime.now(UTC)
            goals = [goal_of(id=f"{number:032x}") for number in range(49)]
            await asyncio.gather(*(board.replace(0, one, PERSON, now) for one in goals))
            (first,) = [one for one in await board.all(ANN) if one.entity.id == goals[0].id]
            parts = tuple(goal_of(id=letter * 32, parent=goals[0].id) for letter in "bc")
            split = change(first.entity, 1, expect=first.number, parts=parts)
            assert len((await told(session, split))[0].splitlines()) == 2
            said = {"description": "Read the mail"}
            assert (await ann.post("/api/goals", json=said)).status_code == 201
            path, body = f"/api/goals/{goals[0].id}/parts", {"parts": [said]}
            full = assert_problem(await ann.post(path, json=body), 422, "goal")
            assert "ann has 52 of 52" in full["detail"]
            assert_problem(await ann.post("/api/goals", json=said), 422, "goal")
            (refused,) = await told(session, change(goal_of(id="e" * 32), 2))
            assert refused.startswith("! Not made: goal: ann has 52 already")

            month = now - timedelta(days=31)
            for key in ("answers", "mail"):
                liked = first_of(lesson_of(how="said", at=month, id=id_of(ANN, key), key=key))
                await KeptBoard(session.bus, PREFERENCES).replace(0, liked, PERSON, month)
            found = (await ann.get("/api/preferences")).json()["preferences"]
            assert {(one["confidence"], one["level"]) for one in found} == {(0.4, "tentative")}
            (seen,) = await told(session, change(lesson_of("long", at=now), 3))
            assert seen == "answers: known as it stands, tentative (0.30)."
            confirmed = await ann.patch(f"/api/preferences/{id_of(ANN, 'mail')}", json=CONFIRMED)
            assert confirmed.json()["confidence"] == 0.9
        finally:
            await gate.close()
