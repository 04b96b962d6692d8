"""Double texting: a message that comes while another is worked on (SPEC S-13)."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from services.cortex import core
from services.cortex.core import Draft, Policy
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, START, Driver, answer, call
from vigil.contracts import (
    TURN_BYTES_MAX,
    FollowUp,
    TimerFired,
    TimerPayload,
    Turn,
    encode,
)

INTERRUPT = Policy(autonomy_enabled=True, double_text="interrupt")
COALESCE = Policy(autonomy_enabled=True, double_text="coalesce", coalesce_ms=500)


def echo(draft: Draft) -> ModelAnswer:
    return answer(f"to {draft.loop.cause.id}")


def notes_of(turns: list[Turn]) -> list[tuple[str, str | None]]:
    return [(note.code, note.subject) for turn in turns for note in turn.notes]


def ended(driver: Driver) -> list[str]:
    return [event_id for turn in driver.turns for event_id in turn.ended]


def people_rows(turns: list[Turn]) -> list[str]:
    return [
        getattr(row.blocks[0], "text", "")
        for turn in turns
        for row in turn.rows
        if row.source == "person"
    ]


# ---------------------------------------------------------------- interrupt


def test_interrupt_answers_the_new_message_instead() -> None:
    """The earlier one stands in the history; its exchange is over, and says so."""
    driver = Driver(echo, INTERRUPT)
    turns = driver.meanwhile(driver.message("one"), driver.message("two"))
    assert driver.texts == ["to two"]
    assert people_rows(turns) == ["one", "two"]
    assert ended(driver) == ["one", "two"]
    assert notes_of(turns) == [("interrupted", "one")]


def test_interrupt_keeps_what_was_said() -> None:
    """What send_message committed stays said, in its place; later results are late."""
    steps = [answer(call("send_message", text="Working on it.")), answer("Here.")]
    driver = Driver(lambda _: steps.pop(0), INTERRUPT)
    first = driver.fold(driver.message("one"))
    driver.finish(first)
    assert driver.state.loop is not None
    driver.feed(driver.message("two"))
    assert driver.texts == ["Working on it.", "Here."]
    assert [send.payload.caused_by for send in driver.sends] == ["one", "two"]


def test_interrupt_ends_the_wait_for_a_retry() -> None:
    """Its deadline is taken away, and changes nothing if it comes all the same."""
    results = [TimeoutError("529"), answer("Here.")]
    driver = Driver(lambda _: results.pop(0), INTERRUPT)
    driver.feed(driver.message("one"))
    assert driver.state.loop is not None
    assert driver.state.loop.retry is not None
    generation = driver.state.loop.retry.generation
    driver.feed(driver.message("two"))
    assert ("_retry", generation) not in driver.open_in_log()
    payload = TimerPayload(
        timer_id="_retry", generation=generation, fire_at=driver.now, kind="deadline"
    )
    late = TimerFired(id="late", session_key=KEY, created_at=driver.now, payload=payload)
    assert notes_of(driver.feed(late)) == [("stale_deadline", "_retry")]
    assert driver.texts == ["Here."]


def test_interrupt_answers_the_person_before_what_waits() -> None:
    """An event from outside and a kept reminder wait: the event is known, the reminder follows."""
    driver = Driver(echo, INTERRUPT)
    remind(driver, "tea")
    turns = driver.meanwhile(
        driver.message("one"),
        driver.external("red", "x1"),
        driver.timer_event("tea"),
        driver.message("two"),
    )
    assert [row.source for turn in turns for row in turn.rows] == [
        "person", "external", "person", "agent", "timer", "agent",
    ]  # fmt: skip
    assert driver.texts[0] == "to two"


def remind(driver: Driver, name: str) -> None:
    draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
    kept = FollowUp(generation=draft.ordinal, fire_at=driver.now, reason="r", keep=True)
    draft.open_follow_up(name, kept)
    driver.commit(draft)


# ---------------------------------------------------------------- coalesce


def test_coalesce_waits_for_more_and_answers_all_together() -> None:
    """Each message's exchange ends with the one answer, which the last one caused."""
    driver = Driver(echo, COALESCE)
    for text in ("one", "two", "three"):
        (turn,) = driver.feed(driver.message(text))
        assert turn.outcome == "queued"
        assert core.owes(driver.state) is None, "it waits for a deadline, nobody owes a step"
        driver.wait(0.4)
    turns = driver.gathered()
    assert driver.now == START + timedelta(seconds=1.3), "half a second after the last one"
    assert driver.texts == ["to three"]
    assert people_rows(turns) == ["one", "two", "three"]
    assert ended(driver) == ["one", "two", "three"]
    assert notes_of(turns) == [("joined", "one"), ("joined", "two")]
    assert driver.state.gathering is None


def test_coalesce_has_an_end_however_fast_one_types() -> None:
    """Ten windows at most."""
    driver = Driver(echo, COALESCE)
    for number in range(100):
        driver.feed(driver.message(f"m{number}"))
        if driver.state.gathering is not None:
            assert driver.state.gathering.due_at <= START + timedelta(seconds=5)
        driver.wait(0.049)
    driver.gathered()
    assert driver.now == START + timedelta(seconds=5)
    assert driver.texts[0] == "to m49", "fifty at a time"
    assert driver.texts[1] == "to m99"


def test_coalesce_voids_at_once_what_the_agent_planned() -> None:
    """S-6: a message counts from its being stored, not from its being answered."""
    driver = Driver(echo, COALESCE)
    driver.quiet_until = START + timedelta(hours=1)
    driver.outside("red")
    driver.quiet_until = None
    assert driver.state.follow_ups
    (turn,) = driver.feed(driver.message("one"))
    assert driver.state.follow_ups == {}
    assert turn.state.fence == turn.state.position


def test_what_comes_in_while_messages_are_gathered_waits_behind_them() -> None:
    driver = Driver(echo, COALESCE)
    remind(driver, "tea")
    driver.feed(driver.message("one"))
    driver.feed(driver.timer_event("tea"))
    driver.feed(driver.external("red", "x1"))
    driver.feed(driver.message("two"))
    assert driver.texts == []
    turns = driver.gathered()
    sources = [row.source for turn in turns for row in turn.rows]
    assert sources == ["external", "person", "person", "agent", "timer", "agent"]
    assert driver.texts[0] == "to two"


def test_messages_during_a_loop_are_joined_when_they_are_taken() -> None:
    driver = Driver(echo, COALESCE)
    driver.feed(driver.message("one"))
    waiting = driver.state.gathering
    assert waiting is not None
    due = TimerPayload(
        timer_id="_coalesce", generation=waiting.generation, fire_at=waiting.due_at, kind="deadline"
    )
    fired = TimerFired(id="d", session_key=KEY, created_at=driver.now, payload=due)
    driver.meanwhile(fired, *map(driver.message, ("two", "three", "four")))
    assert driver.texts == ["to one", "to four"]
    assert ended(driver) == ["one", "two", "three", "four"]


def test_a_stopped_exchange_ends_for_all_that_it_joined() -> None:
    """S-11, I-5: nobody waits for an answer that won't come."""
    driver = Driver(lambda _: TimeoutError("529"), COALESCE)
    driver.feed(driver.message("one"))
    driver.feed(driver.message("two"))
    driver.gathered()
    assert ended(driver) == []
    driver.control("stop")
    assert set(ended(driver)) >= {"one", "two"}


def test_long_messages_are_joined_as_far_as_a_turn_holds_them() -> None:
    driver = Driver(echo, COALESCE)
    for number in range(5):
        text = msgspec.structs.replace(driver.message(f"m{number}").payload, text="x" * 60_000)
        driver.feed(msgspec.structs.replace(driver.message(f"m{number}"), payload=text))
    turns = driver.gathered()
    assert driver.texts == ["to m1", "to m3", "to m4"]
    assert max(len(encode(turn)) for turn in turns) < TURN_BYTES_MAX // 2


def test_a_deadline_that_can_not_be_used_does_not_keep_messages_for_ever() -> None:
    """X-6: passed over as poison, it ends the wait."""
    driver = Driver(echo, COALESCE)
    driver.feed(driver.message("one"))
    waiting = driver.state.gathering
    assert waiting is not None
    payload = TimerPayload(
        timer_id="_coalesce", generation=waiting.generation, fire_at=waiting.due_at, kind="deadline"
    )
    event = TimerFired(id="d", session_key=KEY, created_at=driver.now, payload=payload)
    cause = core.cause_of(driver.store(event), event)
    driver.commit(
        core.poison(KEY, driver.state, cause, "crashed", driver.moment(), driver.policy, event)
    )
    driver.settle()
    assert driver.texts == ["to one"]


def test_a_stale_deadline_ends_no_wait() -> None:
    driver = Driver(echo, COALESCE)
    driver.feed(driver.message("one"))
    driver.gathered()
    driver.feed(driver.message("two"))
    payload = TimerPayload(timer_id="_coalesce", generation=1, fire_at=driver.now, kind="deadline")
    event = TimerFired(id="d", session_key=KEY, created_at=driver.now, payload=payload)
    assert notes_of(driver.feed(event)) == [("stale_deadline", "_coalesce")]
    assert driver.state.gathering is not None


def test_an_agent_that_no_longer_coalesces_answers_what_it_gathered() -> None:
    """The setting is read at start; what waits was stored under the other one."""
    driver = Driver(echo, COALESCE)
    driver.feed(driver.message("one"))
    driver.feed(driver.message("two"))
    driver.policy = Policy()
    driver.feed(driver.message("three"))
    driver.gathered()
    assert driver.texts == ["to one", "to two", "to three"]
