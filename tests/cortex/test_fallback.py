"""Another model answers for a while, since the one that should gives no answer (SPEC C-9)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from services.cortex.core import Draft, Policy
from services.cortex.model import ModelAnswer
from tests.cortex.driver import Driver, answer
from tests.support.messages_api import Reply, calls, fails, messages_api, says
from tests.support.stack import running_stack
from tests.support.talk import Talk
from tests.support.world import StoppedClock

POLICY: Final = Policy(fallback="small", fallback_after=2, fallback_pause_s=300, retries_max=3)
HOUR_S: Final = 3600


class Two:
    """A model and its fallback; each answers, or fails with what it has."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.main: Exception | None = None
        self.small: Exception | None = None
        self.asked: list[str] = []
        self.driver = Driver(self._think, policy)

    def _think(self, draft: Draft) -> ModelAnswer | Exception:
        until = draft.state.fallback_until
        is_away = until is not None and self.driver.now < until
        self.asked.append("small" if is_away else "main")
        failure = self.small if is_away else self.main
        return failure or msgspec.structs.replace(answer("Hello."), is_fallback=is_away)

    @property
    def notes(self) -> list[str]:
        return [note.code for turn in self.driver.turns for note in turn.notes]

    def retry(self) -> None:
        loop = self.driver.state.loop
        assert loop is not None
        assert loop.retry is not None
        self.driver.now = loop.retry.due_at
        self.driver.deadline()


def test_after_failures_in_a_row_the_fallback_answers_until_the_pause_is_over() -> None:
    two = Two()
    two.main = TimeoutError("529")
    two.driver.user()
    assert two.driver.texts == []
    two.retry()
    assert two.driver.texts == ["Hello."]
    assert two.asked == ["main", "main", "small"]
    assert two.notes == ["model_retry", "model_fallback", "model_away"]
    assert two.driver.state.fallback_until == two.driver.now + timedelta(seconds=300)
    (note,) = two.driver.turns[1].notes
    assert note.text.startswith("small until 20")
    assert note.text.endswith(" UTC, since attempt 2 failed (529)")

    two.driver.wait(299)
    two.driver.user()
    assert two.asked[3:] == ["small"]
    two.driver.wait(1)
    two.driver.user()
    assert two.asked[4:] == ["main", "small"], "one failure is enough, nobody waits again"
    two.driver.wait(300)
    two.main = None
    two.driver.user()
    assert two.asked[6:] == ["main"]
    assert two.notes[-1] == "model_back"
    assert two.driver.state.fallback_until is None


def test_what_no_wait_would_mend_falls_back_at_once() -> None:
    """A refused key, a model that isn't there."""
    two = Two()
    two.main = RuntimeError("401")
    two.driver.user()
    assert two.asked == ["main", "small"]


def test_a_request_that_is_wrong_does_not() -> None:
    """No other model would take it either; nor does one for whom there is no money."""
    two = Two()
    two.main = ValueError("400")
    two.driver.user()
    assert two.asked == ["main"]
    assert two.driver.texts == ["I could not answer: 400"]


@pytest.mark.parametrize("pause_s", [0.001, 300])
def test_two_that_are_both_away_are_given_up(pause_s: float) -> None:
    """All attempts at a step count, whoever made them."""
    two = Two(msgspec.structs.replace(POLICY, fallback_pause_s=pause_s))
    two.main = two.small = TimeoutError("529")
    two.driver.user()
    while two.driver.state.loop is not None:
        two.retry()
    assert two.driver.texts == ["I could not answer: 529"]
    assert len(two.asked) <= POLICY.retries_max + 2
    assert {"main", "small"} == set(two.asked)


@pytest.mark.parametrize("retries_max", [0, 1])
def test_fewer_retries_than_failures_are_enough(retries_max: int) -> None:
    policy = msgspec.structs.replace(POLICY, fallback_after=9, retries_max=retries_max)
    two = Two(policy)
    two.main = TimeoutError("529")
    two.driver.user()
    for _ in range(retries_max):
        two.retry()
    assert two.driver.texts == ["Hello."]


def test_without_a_fallback_nothing_changes() -> None:
    two = Two(msgspec.structs.replace(POLICY, fallback=""))
    two.main = RuntimeError("401")
    two.driver.user()
    assert two.asked == ["main"]
    assert two.driver.state.fallback_until is None


async def test_a_provider_that_is_overloaded_for_an_hour(tmp_path: Path) -> None:
    """Issue 14: every message is answered, the provider is left alone, and asked once a pause."""
    clock = StoppedClock()
    begun = clock.now()

    def overloaded(_: dict[str, Any]) -> Reply:
        is_over = clock.now() >= begun + timedelta(seconds=HOUR_S)
        return says("I am back.") if is_over else fails(529)

    async with (
        messages_api(overloaded) as main,
        messages_api(lambda _: says("Here.")) as small,
        running_stack(
            tmp_path,
            services=("cortex", "scheduler", "delivery"),
            clock=clock,
            model={"main": "big", "fallback": "small", "fallback_after": 1},
            models={"big": {"base_url": main.url}, "small": {"base_url": small.url}},
        ) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t1")
        for count in range(1, HOUR_S // 100 + 1):
            await _answer(talk, count)
            clock.move(100)
        assert {said.text for said in talk.said} == {"Here."}
        assert len(talk.said) == len(small.requests) == HOUR_S // 100
        assert len(main.requests) == HOUR_S // 300
        assert talk.notes.count("model_fallback") == HOUR_S // 300
        assert {used.model for turn in talk.turns for used in turn.usage} == {"small"}
        await _answer(talk, HOUR_S // 100 + 1)
        assert talk.said[-1].text == "I am back."
        assert talk.turns[-1].state.fallback_until is None


async def test_what_is_too_long_for_the_fallback_waits_for_the_model(tmp_path: Path) -> None:
    """It would be refused there: the model itself is tried again."""
    async with (
        messages_api() as main,
        messages_api() as small,
        running_stack(
            tmp_path,
            services=("cortex", "scheduler", "delivery"),
            model={"main": "big", "fallback": "small", "fallback_after": 1, "retry_base_s": 0.05},
            models={
                "big": {"base_url": main.url},
                "small": {"base_url": small.url, "context_tokens": 2000},
            },
        ) as stack,
    ):
        main.replies.extend([fails(529), fails(529), says("At last.")])
        talk = await Talk.open(stack, "ann:vigil:t1")
        await _answer(talk, 1)
        assert talk.said[-1].text == "At last."
        assert small.requests == []
        assert talk.notes[-1] == "model_back"


async def test_thinking_goes_back_only_to_whom_it_is_of(tmp_path: Path) -> None:
    """A provider refuses a conversation with what another one signed."""
    clock = StoppedClock()
    async with (
        messages_api() as main,
        messages_api() as small,
        running_stack(
            tmp_path,
            services=("cortex", "scheduler", "delivery"),
            clock=clock,
            model={"main": "big", "fallback": "small", "fallback_after": 1},
            models={"big": {"base_url": main.url}, "small": {"base_url": small.url}},
        ) as stack,
    ):
        main.replies.extend([_thinks("s-big"), fails(529), says("I am back.")])
        small.replies.extend([_thinks("s-small"), says("Done.")])
        talk = await Talk.open(stack, "ann:vigil:t1")
        await _answer(talk, 1)
        assert "'signature': 's-big'" in str(main.requests[1].body)
        assert [len(request.body["messages"]) for request in small.requests] == [3, 5]
        assert "signature" not in str([request.body["messages"] for request in small.requests])
        clock.move(300)
        await _answer(talk, 2)
        assert "'signature': 's-big'" in str(main.last["messages"])
        assert "'signature': 's-small'" not in str(main.last["messages"])


def _thinks(signature: str) -> Reply:
    """Think, and schedule something."""
    call = calls("schedule_followup", {"delay_seconds": 9000, "reason": f"look {signature}"})
    thought = {"type": "thinking", "thinking": "", "signature": signature}
    return msgspec.structs.replace(call, blocks=(thought, *call.blocks))


async def _answer(talk: Talk, count: int) -> None:
    """Say something, and wait for the answer to be said: the `count`th."""
    await talk.say("are you there?")
    await talk.until(lambda: len(talk.said) == count)
