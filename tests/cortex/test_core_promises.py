"""What an answer promises is planned, or its model is asked once (`core.promises`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Draft, Policy
from services.cortex.core.promises.unkept import NOTHING_PLANNED
from services.cortex.model import ModelAnswer
from tests.cortex.driver import Driver, answer, call
from vigil.contracts import TextBlock, Tool, ToolUseBlock

PROMISE = "Not yet. I'll check again tomorrow at nine."
PLAN = call("schedule_followup", delay_seconds=86_400, reason="look whether the parcel came")


def saying(*answers: ModelAnswer) -> Driver:
    """A session whose model gives these answers, one after the other, and no more."""
    left = iter(answers)
    return Driver(lambda _draft: next(left))


def shown(driver: Driver) -> list[str]:
    """What the frame told the model beside results."""
    rows = [row for turn in driver.turns for row in turn.rows if row.source == "tool"]
    return [block.text for row in rows for block in row.blocks if isinstance(block, TextBlock)]


def test_a_model_that_forgot_plans_it_then() -> None:
    """The person hears one answer, and it is kept."""
    driver = saying(answer(PROMISE), answer(PLAN), answer("I'll look again tomorrow at nine."))
    driver.user("has my parcel come?")
    assert driver.texts == ["I'll look again tomorrow at nine."]
    assert [one.reason for one in driver.state.follow_ups.values()] == [
        "look whether the parcel came"
    ]
    assert shown(driver) == [NOTHING_PLANNED.format(promise="I'll check again tomorrow at nine.")]
    assert "promise_asked" in driver.notes
    assert "promise_unkept" not in driver.notes


def test_without_more_words_what_was_written_first_is_said() -> None:
    driver = saying(answer(PROMISE), answer(PLAN), answer(""))
    driver.user("has my parcel come?")
    assert driver.texts == [PROMISE]
    assert "promise_unkept" not in driver.notes


def test_a_model_that_insists_is_heard_and_a_note_tells() -> None:
    driver = saying(answer(PROMISE), answer(PROMISE))
    driver.user("has my parcel come?")
    assert driver.texts == [PROMISE]
    assert driver.notes.count("promise_asked") == 1
    assert driver.notes.count("promise_unkept") == 1


def test_who_takes_the_promise_back_says_what_it_can_do() -> None:
    driver = saying(answer(PROMISE), answer("Not yet, and I can't look by myself."))
    driver.user("has my parcel come?")
    assert driver.texts == ["Not yet, and I can't look by myself."]
    assert "promise_unkept" not in driver.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [("is it there?", "It's there."), ("and then?", "Tell me when you land, and I'll remind you.")],
)
def test_other_answers_take_one_call(text: str, said: str) -> None:
    driver = saying(answer(said))
    driver.user(text)
    assert driver.texts == [said]


def test_what_was_planned_in_the_exchange_keeps_it() -> None:
    driver = saying(answer(PLAN), answer(PROMISE))
    driver.user("look again tomorrow")
    assert driver.texts == [PROMISE]
    assert shown(driver) == []


def test_what_is_told_as_done_and_was_not_is_done_then() -> None:
    """Models tell of a reminder that they never set."""
    kept = call("schedule_followup", delay_seconds=3600, reason="call the dentist", keep=True)
    done = "Done: I've set a reminder for ten."
    driver = saying(answer(done), answer(kept), answer(done))
    driver.user("remind me at ten to call the dentist")
    assert driver.texts == [done]
    assert [one.reason for one in driver.state.follow_ups.values()] == ["call the dentist"]
    assert "promise_unkept" not in driver.notes


def test_a_plan_that_was_refused_keeps_nothing() -> None:
    refused = call("schedule_followup", reason="no time is given")
    driver = saying(answer(refused), answer(PROMISE), answer("I can't look by myself."))
    driver.user("look again tomorrow")
    assert driver.texts == ["I can't look by myself."]


def test_to_look_something_up_keeps_nothing() -> None:
    page = Tool(
        name="page", description="", input_schema={"type": "object"}, risk="read",
        profiles=("channel",),
    )  # fmt: skip
    driver = saying(answer(call("page")), answer(PROMISE), answer(PLAN), answer("Tomorrow."))
    driver.tools = {"page": page}
    driver.user("has my parcel come?")
    driver.result(content="It hasn't.")
    assert driver.texts == ["Tomorrow."]


def test_a_reminder_that_is_open_is_told_again_in_peace() -> None:
    """By a word in common; what is open about something else keeps no promise."""
    kept = call("schedule_followup", delay_seconds=3600, reason="call the dentist", keep=True)
    again = "Yes: I'll remind you of the dentist at ten."
    driver = saying(answer(kept), answer("Fine."), answer(again), answer(PROMISE), answer("No."))
    driver.user("remind me in an hour to call the dentist")
    driver.user("did you note it?")
    driver.user("and my parcel?")
    assert driver.texts == ["Fine.", again, "No."]


def test_thanks_for_a_reminder_takes_one_call() -> None:
    """What was ordered just before is told again in other words; long after, it is asked about."""
    kept = call("schedule_followup", delay_seconds=90_000, reason="call the dentist", keep=True)
    welcome = "You're welcome, I'll remind you at ten."
    talk = [answer(kept), answer("Fine."), answer(welcome)]
    driver = saying(*talk, *[answer("Hm.")] * 6, answer(welcome), answer(welcome))
    driver.user("remind me tomorrow to call the dentist")
    driver.user("thanks!")
    assert shown(driver) == []
    for _ in range(6):
        driver.user("hm")
    driver.user("and remind me of the milk at ten")
    assert len(shown(driver)) == 1


def test_who_is_out_of_steps_is_not_asked() -> None:
    driver = saying(answer(PROMISE))
    driver.policy = Policy(autonomy_enabled=True, calls_max=1)
    driver.user("has my parcel come?")
    assert driver.texts == [PROMISE]
    assert driver.notes.count("promise_unkept") == 1


def test_a_follow_up_that_promises_the_next_plans_it() -> None:
    """Watching goes on by plans: one that only says so would be the last."""
    driver = saying(
        answer(PLAN), answer("Tomorrow."), answer(PROMISE), answer(PLAN), answer("Not yet.")
    )
    driver.user("look every day whether my parcel came")
    driver.wait(86_400)
    (name,) = driver.state.follow_ups
    driver.timer(name)
    assert driver.texts == ["Tomorrow.", "Not yet."]
    assert len(driver.state.follow_ups) == 1


_ANSWERS = st.sampled_from(
    [answer(PROMISE), answer(PLAN), answer("It's there."), answer(""), answer("Oh.", PLAN)]
)


@given(st.lists(_ANSWERS, min_size=1, max_size=6))
def test_an_exchange_asks_once_and_says_once(answers: list[ModelAnswer]) -> None:
    """Whatever the model does: at most one question about a promise, and one answer. What is said
    with a promise is planned, or told in a note."""

    def model() -> Iterator[ModelAnswer]:
        yield from answers
        while True:
            yield answer("It's there.")

    left = model()
    acted: list[bool] = []

    def brain(_draft: Draft) -> ModelAnswer:
        given_now = next(left)
        acted.append(any(isinstance(block, ToolUseBlock) for block in given_now.blocks))
        return given_now

    driver = Driver(brain)
    driver.user("has my parcel come?")
    assert len(shown(driver)) <= 1
    assert len(driver.texts) == 1
    if driver.texts == [PROMISE]:
        assert any(acted) or "promise_unkept" in driver.notes
