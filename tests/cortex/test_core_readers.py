"""Readers: who looks something up outside, and who may send them (LOOPS L-6)."""

from __future__ import annotations

from typing import Any

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.thought.tools import offered_to
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_sway import swayed
from vigil.contracts import Control, ControlPayload, Risk, SpawnSession, Start, Tool

WISH = call("research", task="What is new about tea?")


def offered(name: str, risk: Risk, *profiles: str) -> Tool:
    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    return Tool(name=name, description="", input_schema=schema, risk=risk, profiles=profiles)


TOOLS = {
    one.name: one
    for one in (
        offered("http_get", "external", "channel"),
        offered("web_search", "external", "reader"),
        offered("shell", "external", "channel", "worker"),
        offered("read_file", "read", "channel", "worker"),
        offered("mail__send", "external"),
    )
}


def started(driver: Driver) -> list[SpawnSession]:
    return [e for turn in driver.turns for e in turn.effects if isinstance(e, SpawnSession)]


def reader(*answers: Any, is_tainted: bool = False) -> Driver:
    driver = Driver(None, Policy(profile=profile_of("reader"), authority="off"))
    left = list(answers)
    driver.brain = lambda _: left.pop(0)
    driver.tools = dict(TOOLS)
    start = Start(prompt="tea?", parent="ann:vigil:t1", call_id="1f", is_tainted=is_tainted)
    payload = ControlPayload(op="start", start=start)
    driver.feed(Control(id="s", session_key=driver.key, created_at=driver.now, payload=payload))
    return driver


# ---------------------------------------------------------------- sending one


def test_several_questions_are_looked_up_side_by_side() -> None:
    driver = Driver(lambda _: answer(WISH, WISH, WISH) if not started(driver) else answer("On it."))
    driver.user("what is new?")
    assert [(e.payload.kind, e.payload.is_ordered) for e in started(driver)] == [
        ("reader", True)
    ] * 3
    assert driver.texts == ["On it."]
    assert driver.board == []


def test_a_swayed_loop_asks_and_sends_by_the_persons_word_alone() -> None:
    """Its task may carry out what the thread knows, and would be read outside."""
    driver = swayed(answer(WISH), answer("I asked."))
    driver.user("do what it says")
    assert started(driver) == []
    (approval,) = driver.state.approvals.values()
    assert (approval.tool, approval.risk, approval.is_tainted) == ("research", "external", True)
    driver.decide("accept", digest="0" * 64)
    assert started(driver) == []
    driver.decide("edit", input={"question": "tea"})
    assert driver.notes.count("verdict_refused") == 2
    driver.decide("accept")
    (effect,) = started(driver)
    assert effect.payload.prompt == "What is new about tea?"
    assert effect.payload.is_tainted
    assert not effect.payload.is_ordered
    (task,) = driver.state.tasks.values()
    assert (task.kind, task.is_awaited) == ("reader", False)
    driver.result(effect.id, "Tea is green.", is_tainted=True)
    assert driver.state.tasks == {}


def test_an_edited_question_is_the_one_that_goes_out() -> None:
    driver = swayed(answer(WISH), answer("I asked."))
    driver.user("do what it says")
    driver.decide("edit", input={"task": "What is tea?"})
    assert [e.payload.prompt for e in started(driver)] == ["What is tea?"]


# ---------------------------------------------------------------- being one


@pytest.mark.parametrize("is_tainted", [False, True])
def test_a_reader_goes_anywhere_without_asking_whatever_it_read(*, is_tainted: bool) -> None:
    """Nobody ordered it, its authority is "off", and pages have a part: it knows nothing."""
    driver = reader(
        answer(call("web_search", query="tea"), call("http_get", url="https://a.example")),
        answer(call("http_get", url="https://b.example")),
        answer("Tea is green."),
        is_tainted=is_tainted,
    )
    driver.result(content="| obey", is_tainted=True)
    driver.result(content="| obey", is_tainted=True)
    driver.result(content="| obey", is_tainted=True)
    assert [e.payload.tool for e in driver.called] == ["web_search", "http_get", "http_get"]
    assert driver.board == []
    assert driver.state.loop is None


@pytest.mark.parametrize(
    "wish",
    [
        call("shell", command="ls"), call("read_file", path="x"), call("mail__send", to="x"),
        call("memory_save", content="x"), call("recall", query="x"), call("spawn_worker", task="x"),
        call("research", task="x"), call("schedule_followup", delay_seconds=1, reason="x"),
        call("ask_user", question="x"), call("send_message", text="x"),
    ],
    ids=lambda wish: wish.name,
)  # fmt: skip
def test_a_reader_has_nothing_else(wish: Any) -> None:
    """L-6: whatever a page makes it call."""
    driver = reader(answer(wish), answer("No."))
    assert driver.called == []
    assert started(driver) == []
    assert driver.state.follow_ups == {}
    assert driver.state.approvals == {}


def test_what_a_reader_is_shown() -> None:
    shown = {spec.name for spec in offered_to(profile_of("reader"), TOOLS).all}
    assert shown == {"http_get", "web_search"}
    assert "web_search" not in {spec.name for spec in offered_to(profile_of("channel"), TOOLS).all}


def test_what_cannot_be_undone_is_never_free() -> None:
    driver = Driver(None, Policy(profile=profile_of("reader")))
    left = [answer(call("http_get", url="https://a.example")), answer("No.")]
    driver.brain = lambda _: left.pop(0)
    driver.tools = {"http_get": offered("http_get", "destructive", "reader")}
    payload = ControlPayload(op="start", start=Start(prompt="tea?", parent="ann:vigil:t1"))
    driver.feed(Control(id="s", session_key=driver.key, created_at=driver.now, payload=payload))
    assert driver.called == []
    assert [one.tool for one in driver.board] == ["http_get"]
