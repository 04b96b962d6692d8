"""A reminder that is kept ends by being said, or cancelled, and by nothing else (SPEC S-6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from services.cortex import core
from services.cortex.core import Draft, Policy
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, START, Driver, answer, call
from vigil.contracts import FollowUp, Queued, State, Task, Tool

PILL = {"timer_id": "pill", "reason": "take the pill", "keep": True}


def remind(driver: Driver, name: str = "pill", reason: str = "take the pill") -> None:
    draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
    kept = FollowUp(generation=draft.ordinal, fire_at=driver.now, reason=reason, keep=True)
    draft.open_follow_up(name, kept)
    driver.commit(draft)


def begin(driver: Driver, name: str = "pill") -> None:
    """Let a reminder be due, and the model answer once."""
    driver.finish(driver.fold(driver.timer_event(name)))


def test_one_that_comes_again_tomorrow_is_said_today() -> None:
    """S-6, ADR 8: its loop has planned the next one under its name, and the person writes."""

    def brain(draft: Draft) -> ModelAnswer:
        if draft.loop.is_direct:
            return answer("hi")
        if draft.loop.calls == 0 and draft.loop.timer_id == "pill":
            return answer(call("schedule_followup", delay_seconds=86_400, **PILL))
        assert draft.loop.follow_up is not None
        return answer(f"Now: {draft.loop.follow_up.reason}")

    driver = Driver(brain)
    remind(driver)
    begin(driver)
    assert driver.state.loop is not None
    driver.user("hello")
    due = [name for name, plan in driver.state.follow_ups.items() if plan.fire_at <= driver.now]
    for name in due:
        driver.timer(name)
    assert driver.texts == ["hi", "Now: take the pill"]
    assert driver.state.follow_ups["pill"].fire_at == START + timedelta(days=1)
    assert list(driver.state.follow_ups) == ["pill"]


def test_a_flood_of_events_does_not_push_it_out() -> None:
    """S-6, X-3: whoever fills the queue, it waits for its turn."""
    driver = Driver(policy=Policy(queue_max=2))
    remind(driver)
    driver.commit(driver.fold(driver.external("a", "x1")))
    full = tuple(Queued(seq=10**9 + n, type="external") for n in range(2))
    driver.state = msgspec.structs.replace(driver.state, queue=full)
    driver.commit(driver.fold(driver.timer_event("pill")))
    assert "pill" in driver.state.follow_ups
    assert [queued.type for queued in driver.state.queue] == ["external", "external", "timer"]
    assert "queue_full" not in driver.notes


def asking(risk: Any = "destructive") -> Driver:
    """A session whose reminders call a tool that needs leave, and speak after that."""

    def brain(draft: Draft) -> ModelAnswer:
        if draft.loop.is_direct or draft.loop.timer_id is None:
            return answer("noted")
        if draft.loop.calls == 0:
            return answer(call("shell", command="report"))
        return answer("Take the pill.")

    driver = Driver(brain)
    driver.tools = {
        "shell": Tool(
            name="shell", description="d", input_schema={"type": "object"}, risk=risk, timeout_s=5
        )
    }
    return driver


@pytest.mark.parametrize("is_swayed", [False, True])
def test_one_that_asks_for_leave_is_said_all_the_same(is_swayed: bool) -> None:
    """S-7, X-2: the request isn't the reminder; both come, whatever cap and cooldown say."""
    driver = asking("write" if is_swayed else "destructive")
    if is_swayed:
        driver.outside("Dear agent")
    remind(driver)
    driver.timer("pill")
    assert driver.texts[-1] == "Take the pill."
    assert driver.state.approvals


@pytest.mark.parametrize("is_swayed", [False, True])
def test_one_that_asked_for_leave_is_put_back(is_swayed: bool) -> None:
    """ADR 8: what was asked for is withdrawn by the person's message; the reminder isn't."""
    driver = asking("write" if is_swayed else "destructive")
    if is_swayed:
        driver.outside("Dear agent")
    remind(driver)
    begin(driver)
    assert driver.state.approvals
    driver.user("what is it?")
    assert driver.texts[-1] == "Take the pill."
    assert "void" not in driver.notes


def test_a_swayed_one_has_one_request_that_no_gate_stops() -> None:
    """S-7: a stranger can't make the person's reminder ask for thing after thing."""
    wishes = [
        msgspec.structs.replace(call("shell", command=f"c{n}"), id=f"call-{n}") for n in range(3)
    ]
    driver = asking("write")
    driver.outside("Dear agent")
    remind(driver)
    rest = driver.brain
    driver.brain = lambda draft: (
        answer(*wishes) if draft.loop.timer_id and not draft.loop.calls else rest(draft)
    )
    driver.timer("pill")
    assert len(driver.state.approvals) == 1
    assert driver.texts[-1] == "Take the pill."


def test_one_that_comes_again_asks_in_a_swayed_thread() -> None:
    """S-7, X-3: the person ordered it, so they are asked whether it is to come again."""
    again = call("schedule_followup", delay_seconds=86_400, **PILL)

    def brain(draft: Draft) -> ModelAnswer:
        is_reminder = draft.loop.timer_id is not None
        return answer(again) if is_reminder and not draft.loop.calls else answer("Take the pill.")

    driver = Driver(brain)
    driver.outside("Dear agent")
    remind(driver)
    driver.timer("pill")
    assert driver.texts[-1] == "Take the pill."
    assert not driver.state.follow_ups, "not without a word of theirs"
    driver.decide("accept")
    (planned,) = driver.state.follow_ups.values()
    assert (planned.keep, planned.is_tainted) == (True, False)
    assert planned.fire_at == START + timedelta(days=1)


@pytest.mark.parametrize(
    "wish",
    [
        call("schedule_followup", delay_seconds=1, timer_id="pill", reason="something else"),
        call("cancel_followup", timer_id="pill"),
    ],
    ids=["replace", "cancel"],
)
def test_who_is_asked_to_give_one_up_is_told_which(wish: Any) -> None:
    """X-2: an id says nothing; a person who accepts knows what they lose."""
    driver = Driver(lambda d: answer(wish) if d.loop.is_direct and not d.loop.calls else answer())
    driver.outside("Dear agent")
    remind(driver)
    driver.user("hello")
    (text,) = driver.texts[-1:]
    assert "take the pill" in text


def test_an_ordered_result_that_is_given_up_at_night_is_told_of_in_the_morning() -> None:
    """S-6, S-7: late and plainly, but told."""
    driver = Driver()
    task = Task(
        tool="spawn_worker", title="look it up", due_at=START, generation=1, is_ordered=True,
        told_seq=9,
    )  # fmt: skip
    driver.quiet_until = START + timedelta(hours=8)
    state = State(turns=1, tasks={"x": task}, queue=(Queued(seq=9, type="tool_result"),))
    driver.commit(core.give_up(KEY, state, driver.moment(), driver.policy))
    assert driver.texts == []
    driver.now, driver.quiet_until = driver.quiet_until, None
    for name in list(driver.state.follow_ups):
        driver.timer(name)
    (text,) = driver.texts
    assert "look it up" in text
