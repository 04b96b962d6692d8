"""How far a task of A2A is, by the records of its message (ADR 65)."""

from __future__ import annotations

from services.cortex.core import Policy
from services.cortex.model import ModelError
from services.gateway.a2a.story import TaskStory
from services.gateway.http.decide import Exchange
from tests.cortex.driver import Driver, answer
from vigil.contracts import SendMessage


def state_of(driver: Driver) -> str:
    """Return the state of the task that the message ``e`` is, with all said that is to be."""
    exchange = Exchange("e", 3)
    story = TaskStory("e", exchange)
    for turn in driver.turns:
        exchange.take_turn(turn)
        story.take(turn)
        for effect in turn.effects:
            if isinstance(effect, SendMessage):
                exchange.take_receipt(effect.id)
    return story.state


def test_it_is_what_became_of_the_message() -> None:
    done = Driver()
    done.user("hi", event_id="e")
    failed = Driver(lambda _: ValueError("broken"), Policy(retries_max=0))
    failed.user("hi", event_id="e")
    stopped = Driver(lambda _: TimeoutError("away"), Policy(retries_max=3))
    stopped.user("hi", event_id="e")
    assert state_of(stopped) == "working"
    stopped.control("stop")
    assert [state_of(one) for one in (done, failed, stopped)] == ["completed", "failed", "canceled"]


def test_put_off_it_is_at_work_until_the_answer_is_there() -> None:
    later = Driver().now
    error = ModelError("the budget is used up", is_retryable=False, budget_at=later)
    left = [error, answer("Now.")]
    driver = Driver(lambda _: left.pop(0))
    driver.user("hi", event_id="e")
    assert state_of(driver) == "working"
    driver.deadline()
    assert state_of(driver) == "completed"
