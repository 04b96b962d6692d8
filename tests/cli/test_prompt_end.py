"""How a prompt of an editor ends, by what stands in the log (`vigil acp`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.cortex.core import Policy
from services.cortex.model import ModelError
from tests.cortex.driver import Driver, answer, call
from vigil.cli.editors.prompt_end import PromptEnd, ToolUpdate
from vigil.contracts import Tool, Turn, encode

BURN = Tool(name="burn", description="", input_schema={}, risk="destructive", profiles=("channel",))
LOOK = Tool(name="look", description="", input_schema={}, risk="read", profiles=("channel",))


def driver_of(*answers: Any, **policy: Any) -> Driver:
    left = list(answers)
    driver = Driver(lambda _: left.pop(0), Policy(autonomy_enabled=True, **policy))
    driver.tools = {"burn": BURN, "look": LOOK}
    return driver


def told(end: PromptEnd, *turns: Turn) -> list[ToolUpdate]:
    """Let it take turns as they are stored; return what there is to show."""
    records = [json.loads(encode(turn)) for turn in turns]
    return [news for record in records for news in end.take("turn", record)]


def test_it_is_over_once_all_is_said() -> None:
    driver = driver_of(answer(call("look", path="a")), answer("There."))
    driver.user("look", event_id="e")
    end = PromptEnd("e")
    (news,) = told(end, *driver.turns)
    assert (news.tool, news.arguments, news.status) == ("look", {"path": "a"}, "in_progress")
    driver.result(news.call_id, "It is")
    result = {"payload": {"call_id": news.call_id, "content": "It is"}}
    assert list(end.take("in.tool_result", result)) == [ToolUpdate(news.call_id, "completed")]
    assert not told(end, driver.turns[-1])
    assert not end.is_over
    (send,) = driver.sends
    assert not list(end.take("out.said", {"id": send.id}))
    assert (end.is_over, end.is_stopped, end.said) == (True, False, {send.id})


def test_what_asks_for_leave_is_known_by_its_digest_until_it_is_decided() -> None:
    driver = driver_of(answer(call("burn", path="a")), answer("I asked."), answer("Not then."))
    driver.user("burn it", event_id="e")
    end = PromptEnd("e")
    told(end, *driver.turns)
    (approval,) = driver.state.approvals.values()
    (asked,) = end.requests.values()
    assert (asked["id"], asked["digest"]) == (approval.id, approval.digest)
    told(end, *driver.decide("reject"))
    assert not end.requests


@pytest.mark.parametrize("op", ["stop", "message"])
def test_whoever_stops_it_or_writes_instead_ends_it(op: str) -> None:
    driver = driver_of(answer(call("look")), answer("Other."), double_text="interrupt")
    driver.user("look", event_id="e")
    end = PromptEnd("e")
    turns = driver.control("stop") if op == "stop" else driver.user("something else")
    told(end, *turns)
    assert end.is_stopped


def test_without_room_in_the_budget_it_ends_with_what_is_said_of_that() -> None:
    later = Driver().now
    error = ModelError("the budget is used up", is_retryable=False, budget_at=later)
    driver = driver_of(error)
    driver.user("hi", event_id="e")
    end = PromptEnd("e")
    told(end, *driver.turns)
    (send,) = driver.sends
    list(end.take("receipt", {"effect_id": send.id}))
    assert end.is_over
