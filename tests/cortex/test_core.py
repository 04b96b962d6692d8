"""The rules of the core, one by one (SPEC S-3, S-6, S-7, S-8, S-9, S-12, S-13)."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import msgspec
import pytest

from services.cortex import core
from services.cortex.core import Draft, Policy, speech
from services.cortex.core.context.history import trim
from services.cortex.core.context.window import Window
from services.cortex.core.draft.policy import quiet_until
from services.cortex.core.sway import Sway
from services.cortex.history import History
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, START, Brain, Driver, answer, call
from vigil.contracts import (
    TURN_BYTES_MAX,
    FollowUp,
    OpaqueBlock,
    Queued,
    Row,
    ScheduleTimer,
    Task,
    TextBlock,
    TimerFired,
    TimerPayload,
    ToolResultBlock,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.contracts.events import Attachment


def scripted(*answers: ModelAnswer | Exception) -> Brain:
    """A brain that gives these answers in order, then says nothing."""
    left = list(answers)
    return lambda _: left.pop(0) if left else answer()


def test_a_message_is_answered_in_one_turn() -> None:
    driver = Driver()
    (turn,) = driver.user("hi")
    assert driver.texts == ["Hello."]
    assert turn.outcome == "answered"
    assert turn.ended == (turn.event.id,) if turn.event else False
    assert not driver.sends[0].payload.is_autonomous
    assert not driver.sends[0].payload.is_voidable


def test_tool_calls_are_a_turn_each_and_the_last_text_is_said() -> None:
    """S-12: every model answer is a turn."""
    driver = Driver(
        scripted(
            answer("Let me see.", call("schedule_followup", delay_seconds=30, reason="x")),
            answer("I will check back."),
        )
    )
    first, second = driver.user()
    assert (first.outcome, second.outcome) == ("continued", "answered")
    assert driver.texts == ["I will check back."]
    assert [type(e) for e in first.effects] == [ScheduleTimer]
    assert first.rows[-1].blocks[0].__class__ is ToolResultBlock


def test_text_beside_a_tool_call_is_said_when_nothing_follows() -> None:
    driver = Driver(
        scripted(answer("Done.", call("schedule_followup", delay_seconds=9, reason="x")), answer())
    )
    driver.user()
    assert driver.texts == ["Done."]


def test_a_user_message_voids_follow_ups_but_not_reminders() -> None:
    """S-6."""
    driver = Driver(
        scripted(
            answer(
                call("schedule_followup", timer_id="a", delay_seconds=30, reason="look"),
                call("schedule_followup", timer_id="b", delay_seconds=30, reason="r", keep=True),
            ),
            answer("ok"),
        )
    )
    driver.user()
    generation = driver.state.follow_ups["a"].generation
    assert set(driver.state.follow_ups) == {"a", "b"}
    driver.user("something else")
    assert set(driver.state.follow_ups) == {"b"}
    assert ("a", generation) not in driver.open_in_log()
    (late,) = driver.timer("a", generation)
    assert late.outcome == "ignored"
    assert late.effects == ()


def test_a_fixed_message_is_sent_without_a_model_call_and_tagged() -> None:
    """S-9, P-6."""
    asked: list[Draft] = []

    def brain(draft: Draft) -> ModelAnswer:
        asked.append(draft)
        if len(asked) == 1:
            return answer(
                call("schedule_followup", timer_id="a", delay_seconds=5, reason="r", message="Hey")
            )
        return answer("ok")

    driver = Driver(brain)
    driver.user()
    driver.wait(5)
    (turn,) = driver.timer("a")
    assert len(asked) == 2
    payload = driver.sends[-1].payload
    assert (payload.text, payload.tag) == ("Hey", "Agent follow-up")
    assert payload.is_autonomous
    assert payload.is_voidable
    assert turn.outcome == "answered"


def follow_up_driver(policy: Policy | None = None, *, keep: bool = False) -> Driver:
    """A session whose agent schedules follow-up "a" on every user message, with a fixed text."""

    def brain(draft: Draft) -> ModelAnswer:
        if draft.loop.is_direct and draft.loop.calls == 0:
            arguments = {"timer_id": "a", "delay_seconds": 1, "reason": "r", "message": "Hey"}
            return answer(call("schedule_followup", keep=keep, **arguments))
        if draft.loop.is_direct:
            return answer("ok")
        return answer("anything new?")

    return Driver(brain, policy)


def reschedule(driver: Driver, timer_id: str = "a", *, keep: bool = False) -> None:
    """Open a follow-up as a turn of the agent's would."""
    draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
    draft.open_follow_up(
        timer_id,
        FollowUp(
            generation=draft.ordinal,
            fire_at=driver.now,
            reason="r",
            message="Hey",
            keep=keep,
        ),
    )
    driver.commit(draft)


def test_the_fourth_message_in_a_row_is_blocked_until_the_person_writes() -> None:
    """S-7: cap."""
    driver = follow_up_driver()
    for _ in range(4):
        reschedule(driver)
        driver.wait(60)
        driver.timer("a")
    assert driver.texts == ["Hey"] * 3
    assert driver.turns[-1].outcome == "blocked"
    assert "blocked_cap" in driver.notes
    driver.user()
    driver.wait(1)
    driver.timer("a")
    assert driver.texts[-1] == "Hey"


@pytest.mark.parametrize(("elapsed_ms", "passes"), [(14_999, False), (15_000, True)])
def test_the_cooldown_ends_exactly_at_its_length(elapsed_ms: int, passes: bool) -> None:
    """S-7: elapsed < 15000 ms blocks, == passes; a blocked message is dropped, not retried."""
    driver = follow_up_driver()
    reschedule(driver)
    driver.timer("a")
    reschedule(driver, "b")
    driver.wait(elapsed_ms / 1000)
    (turn,) = driver.timer("b")
    assert (turn.outcome == "answered") is passes
    assert "b" not in driver.state.follow_ups
    if not passes:
        assert "blocked_cooldown" in driver.notes
        driver.wait(60)
        assert driver.timer("b")[0].outcome == "ignored"


def test_a_user_message_resets_the_cooldown() -> None:
    driver = follow_up_driver()
    reschedule(driver)
    driver.timer("a")
    driver.user()
    driver.wait(1)
    assert driver.timer("a")[-1].outcome == "answered"


def test_ordered_reminders_pass_cap_and_cooldown_but_not_twelve_an_hour() -> None:
    """S-7."""
    driver = follow_up_driver()
    for _ in range(13):
        reschedule(driver, keep=True)
        driver.timer("a")
    assert len(driver.texts) == 12
    assert "blocked_ordered_rate" in driver.notes
    driver.wait(3600)
    reschedule(driver, keep=True)
    driver.timer("a")
    assert len(driver.texts) == 13


def test_an_autonomous_answer_is_gated_again_when_it_is_there() -> None:
    """S-7: gated twice; the counters may have moved while the model thought."""
    driver = follow_up_driver()
    reschedule(driver)
    reschedule(driver, "b")
    first = driver.fold(_timer_event(driver, "a"))
    driver.commit(first)
    state = driver.state
    draft = Draft(KEY, state, driver.moment(), driver.policy)
    assert speech.say(draft, "again", Sway.NONE, is_autonomous=True) is not None


def _timer_event(driver: Driver, timer_id: str) -> TimerFired:
    follow_up = driver.state.follow_ups[timer_id]
    payload = TimerPayload(
        timer_id=timer_id, generation=follow_up.generation, fire_at=follow_up.fire_at
    )
    return TimerFired(id="x", session_key=KEY, created_at=driver.now, payload=payload)


def test_follow_ups_need_the_switch_and_reminders_do_not() -> None:
    """S-11: AUTONOMY_ENABLED gates follow-ups only."""
    driver = follow_up_driver(Policy(autonomy_enabled=False))
    driver.user()
    assert driver.state.follow_ups == {}
    driver = follow_up_driver(Policy(autonomy_enabled=False), keep=True)
    driver.user()
    driver.wait(1)
    driver.timer("a")
    assert driver.texts[-1] == "Hey"


def test_quiet_hours_hold_back_and_the_message_comes_afterwards() -> None:
    """S-7."""
    driver = follow_up_driver()
    driver.user()
    ends_at = driver.now + timedelta(hours=3)
    driver.quiet_until = ends_at
    (turn,) = driver.timer("a")
    assert turn.outcome == "held"
    assert driver.state.follow_ups["a"].fire_at == ends_at
    driver.quiet_until = None
    driver.wait(3 * 3600)
    assert driver.timer("a")[0].outcome == "answered"
    assert driver.texts[-1] == "Hey"


def test_quiet_hours_that_begin_while_the_model_thinks_hold_its_answer() -> None:
    driver = Driver(lambda _: answer("News!"))
    reschedule(driver)
    state = driver.state
    follow_up = state.follow_ups["a"]
    silent = msgspec.structs.replace(follow_up, message=None)
    driver.state = msgspec.structs.replace(state, follow_ups={"a": silent})
    draft = driver.fold(_timer_event(driver, "a"))
    driver.quiet_until = driver.now + timedelta(hours=1)
    driver.finish(draft)
    assert driver.sends == []
    (held,) = driver.state.follow_ups.values()
    assert held.message == "News!"
    driver.quiet_until = None
    driver.wait(3600)
    driver.timer(next(iter(driver.state.follow_ups)))
    assert driver.texts == ["News!"]


def test_a_pause_holds_everything_proactive() -> None:
    driver = follow_up_driver(keep=True)
    driver.user()
    driver.is_paused = True
    assert driver.timer("a")[0].outcome == "held"
    driver.is_paused = False
    assert driver.timer("a")[0].outcome == "answered"


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        ("2026-01-05T21:59", None),
        ("2026-01-05T22:00", "2026-01-06T07:00"),
        ("2026-01-06T06:59", "2026-01-06T07:00"),
        ("2026-01-06T07:00", None),
        # Berlin, the night the clocks go forward and the night they go back.
        ("2026-03-29T01:30", "2026-03-29T07:00"),
        ("2026-10-25T02:30", "2026-10-25T07:00"),
    ],
)
def test_quiet_hours_wrap_midnight(wall: str, expected: str | None) -> None:
    zone = ZoneInfo("Europe/Berlin")
    now = datetime.fromisoformat(wall).replace(tzinfo=zone).astimezone(UTC)
    until = quiet_until(now, (time(22), time(7)), zone)
    shown = None if until is None else until.astimezone(zone).strftime("%Y-%m-%dT%H:%M")
    assert shown == expected


def test_the_same_timer_id_replaces_the_earlier_one() -> None:
    """S-8."""
    driver = follow_up_driver()
    reschedule(driver)
    old = driver.state.follow_ups["a"].generation
    reschedule(driver)
    assert len(driver.state.follow_ups) == 1
    assert driver.timer("a", old)[0].outcome == "ignored"
    assert driver.timer("a")[0].outcome == "answered"


def test_a_timer_replaced_within_one_turn_is_scheduled_once() -> None:
    driver = Driver(
        scripted(
            answer(
                call("schedule_followup", timer_id="a", delay_seconds=1, reason="one"),
                call("schedule_followup", timer_id="a", delay_seconds=2, reason="two"),
                call("schedule_followup", timer_id="b", delay_seconds=2, reason="gone"),
                call("cancel_followup", timer_id="b"),
            ),
            answer("ok"),
        )
    )
    turn = driver.user()[0]
    assert [e.payload.timer_id for e in turn.effects if isinstance(e, ScheduleTimer)] == ["a"]
    assert len(turn.effects) == 1
    assert driver.state.follow_ups["a"].reason == "two"


def test_at_most_100_follow_ups_are_open() -> None:
    """S-8."""
    driver = Driver(
        scripted(
            *(
                answer(
                    *(
                        call("schedule_followup", timer_id=f"t{i * 20 + k}", delay_seconds=9,
                             reason="r")
                        for k in range(20)
                    )
                )
                for i in range(6)
            )
        )
    )  # fmt: skip
    driver.user()
    assert len(driver.state.follow_ups) == 100
    results = [b for t in driver.turns for r in t.rows for b in r.blocks
               if isinstance(b, ToolResultBlock) and b.is_error]  # fmt: skip
    assert len(results) == 20
    assert "100 follow-ups are open" in results[0].content


def test_a_message_during_a_loop_is_queued_and_answered_after_it() -> None:
    """S-13 enqueue: folded at once, no model call, taken when the loop ends."""
    driver = Driver()
    first = driver.fold(_user(driver, "one"))
    driver.commit(first)
    second = driver.fold(_user(driver, "two"))
    assert not second.rows
    assert second.outcome == "queued"
    driver.commit(second)
    driver.settle()
    assert len(driver.sends) == 2
    causes = [s.payload.caused_by for s in driver.sends]
    assert causes == ["one", "two"]
    ended = [event for turn in driver.turns for event in turn.ended]
    assert ended == ["one", "two"]


def _user(driver: Driver, name: str) -> UserMessage:
    payload = UserMessagePayload(text=name)
    return UserMessage(id=name, session_key=KEY, created_at=driver.now, payload=payload)


def test_what_is_attached_is_named_to_the_model() -> None:
    """It knows that there is something, and that it hasn't seen it; a verdict is the text alone."""
    driver = Driver()
    plan = Attachment(hash="0f", name="plan.pdf", type="application/pdf", size=40_200, pages=2)
    payload = UserMessagePayload(text="fits?", attachments=(plan,))
    event = UserMessage(id="m", session_key=KEY, created_at=driver.now, payload=payload)
    (turn,) = driver.feed(event)
    (row,) = (row for row in turn.rows if row.source == "person")
    text = "fits?\n[attached: a PDF file, 2 pages, 41 kB; you can't read it]"
    assert row.blocks == (TextBlock(text=text),)


def test_a_loop_that_a_timer_began_is_closed_by_a_user_message() -> None:
    driver = follow_up_driver()
    reschedule(driver)
    silent = msgspec.structs.replace(driver.state.follow_ups["a"], message=None)
    driver.state = msgspec.structs.replace(driver.state, follow_ups={"a": silent})
    driver.commit(driver.fold(_timer_event(driver, "a")))
    assert driver.state.loop is not None
    driver.user("hello")
    assert driver.texts == ["ok"]
    assert "void" in driver.notes


def test_a_reminder_interrupted_by_the_person_comes_after_the_answer() -> None:
    """S-6: a kept reminder ends only by cancelling it."""
    driver = Driver(scripted(answer("ok"), answer("anything new?")))
    reschedule(driver, keep=True)

    asks = msgspec.structs.replace(driver.state.follow_ups["a"], message=None)
    driver.state = msgspec.structs.replace(driver.state, follow_ups={"a": asks})
    event = _timer_event(driver, "a")
    driver.commit(driver.fold(event))
    driver.user("hello")
    assert driver.texts == ["ok", "anything new?"]
    assert not driver.sends[-1].payload.is_voidable


def test_a_reminder_that_was_said_before_the_interruption_is_not_said_again() -> None:
    """S-6, "nothing said twice": what send_message committed stays said."""
    driver = Driver(scripted(answer(call("send_message", text="Stretch!")), answer("hello")))
    reschedule(driver, keep=True)
    asks = msgspec.structs.replace(driver.state.follow_ups["a"], message=None)
    driver.state = msgspec.structs.replace(driver.state, follow_ups={"a": asks})
    driver.finish(driver.fold(_timer_event(driver, "a")))
    assert driver.state.loop is not None
    driver.user("hi")
    assert driver.texts == ["Stretch!", "hello"]
    assert driver.state.queue == ()


def test_the_queue_has_an_end_and_the_turn_still_fits() -> None:
    """Everything has a limit: a publisher on the bus may store more than a turn can carry."""
    driver = Driver()
    driver.commit(driver.fold(_user(driver, "one")))
    full = tuple(Queued(seq=10**9 + n, type="user_message") for n in range(10_000))
    driver.state = msgspec.structs.replace(driver.state, queue=full)
    turn = driver.commit(driver.fold(_user(driver, "more")))
    assert turn.ended == ("more",)
    assert turn.notes[-1].code == "queue_full"
    assert len(encode(turn)) < TURN_BYTES_MAX


def test_a_long_history_is_cut_where_no_model_would_take_it() -> None:
    """I-2, and a limit on everything."""
    rows = [
        Row(role="user", source="person", at=START, blocks=(TextBlock(text="x" * 60_000),))
        for _ in range(80)
    ]
    assert len(trim(rows, 130_000)) == 6
    huge = Row(role="user", source="person", at=START, blocks=(TextBlock(text="x" * 10**6),))
    assert trim([*rows, huge], 130_000) == [huge]


def test_what_is_shown_of_a_long_history_begins_at_the_same_row_for_long() -> None:
    """L-23: or no provider's cache would hold any of it; never less than half is shown."""
    driver = Driver()
    for number in range(60):
        driver.user(f"message {number}")
    grown, starts = History(20, 200_000), []
    for turn in driver.turns:
        grown.add(turn.ordinal, turn)
        shown = grown.rows([], Window(context_tokens=200_000))
        assert len(shown) <= 20
        assert len(shown) >= min(10, 2 * turn.ordinal)
        starts.append(shown[0])
    changes = sum(a != b for a, b in pairwise(starts))
    assert changes < 2 * 60 // 10


def test_a_keyed_message_counts_once() -> None:
    driver = Driver()
    driver.user("hi", event_id="k1")
    (again,) = driver.user("hi", event_id="k1")
    assert again.outcome == "ignored"
    assert driver.texts == ["Hello."]


def test_a_failing_model_is_asked_again_at_a_deadline_and_then_given_up() -> None:
    """Issue 7: 429, 529 and timeouts become deadlines and events."""
    driver = Driver(lambda _: TimeoutError("529 overloaded"), Policy(retries_max=2))
    (turn,) = driver.user()
    assert turn.outcome == "waiting"
    assert core.owes(driver.state) is None
    loop = driver.state.loop
    assert loop is not None
    assert loop.retry is not None
    assert loop.retry.due_at - driver.now == timedelta(seconds=2)
    driver.wait(2)
    driver.deadline()
    loop = driver.state.loop
    assert loop is not None
    assert loop.retry is not None
    assert loop.retry.due_at - driver.now == timedelta(seconds=4)
    driver.wait(4)
    (last,) = driver.deadline()
    assert last.outcome == "failed"
    assert driver.texts == ["I could not answer: 529 overloaded"]
    assert driver.state.loop is None


def test_a_message_during_the_wait_for_a_retry_is_queued() -> None:
    answers = scripted(TimeoutError("429"), answer("first"), answer("second"))
    driver = Driver(answers)
    driver.user()
    assert driver.user("two")[0].outcome == "queued"
    driver.deadline()
    assert driver.texts == ["first", "second"]


def test_the_answer_may_be_late_but_a_stale_deadline_changes_nothing() -> None:
    driver = Driver(scripted(TimeoutError("429"), answer("done")))
    driver.user()
    loop = driver.state.loop
    assert loop is not None
    driver.deadline()
    generation = loop.retry.generation if loop.retry else 0
    assert driver.timer("_retry", generation)[0].outcome == "ignored"
    assert driver.texts == ["done"]


def test_a_timer_of_a_session_that_is_gone_says_so() -> None:
    """Retention took its records: it starts from its defaults."""
    driver = Driver()
    assert driver.timer("a", 3)[0].notes[0].code == "state_expired"
    assert driver.timer("a", 3)[0].notes[0].code == "stale_timer"


def test_stop_closes_the_loop() -> None:
    """S-11."""
    driver = Driver(scripted(TimeoutError("429")))
    driver.user()
    (turn,) = driver.control("stop")
    assert turn.outcome == "stopped"
    assert driver.state.loop is None
    assert ("_retry", 1) not in driver.open_in_log()
    assert driver.control("stop")[0].notes[0].code == "nothing_to_stop"


def test_cancelling_by_hand_ends_a_reminder_too() -> None:
    driver = follow_up_driver(keep=True)
    driver.user()
    driver.control("clear_follow_ups")
    assert "a" in driver.state.follow_ups
    driver.control("cancel_timer", "a")
    assert driver.state.follow_ups == {}
    assert driver.control("cancel_timer", "a")[0].notes[0].code == "no_such_timer"


def test_a_loop_ends_after_ten_model_calls() -> None:
    """S-12."""
    driver = Driver(lambda _: answer(call("no_such_tool")))
    driver.user()
    assert len(driver.turns) == 10
    assert driver.state.loop is None
    assert "more steps than I may take" in driver.texts[0]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"delay_seconds": 5}, "missing required field `reason`"),
        ({"reason": "r"}, "either delay_seconds or fire_at"),
        ({"reason": "r", "delay_seconds": 1, "fire_at": "2026-01-01T00:00:00Z"}, "either"),
        ({"reason": "r", "delay_seconds": "soon"}, "delay_seconds"),
        ({"reason": "r", "delay_seconds": 1, "colour": "red"}, "unknown field `colour`"),
        ({"reason": "r", "fire_at": "2026-01-01T00:00:00"}, "timezone"),
        ({"reason": "r", "delay_seconds": 1, "timer_id": "_retry"}, "may not start with '_'"),
        ({"reason": "r", "delay_seconds": 1, "timer_id": ""}, "timer_id"),
        ({"reason": "r", "delay_seconds": 1e18}, "delay_seconds"),
    ],
)
def test_bad_arguments_go_back_to_the_model_as_an_error(
    arguments: dict[str, object], reason: str
) -> None:
    """X-6: field and reason."""
    driver = Driver(scripted(answer(call("schedule_followup", **arguments)), answer("sorry")))
    driver.user()
    result = driver.turns[0].rows[-1].blocks[0]
    assert isinstance(result, ToolResultBlock)
    assert result.is_error
    assert reason in result.content
    assert driver.state.follow_ups == {}
    assert driver.texts == ["sorry"]


def test_a_time_in_the_past_is_scheduled_as_it_is() -> None:
    """S-8: a time in the past fires at once."""
    arguments = {"reason": "r", "fire_at": "2001-01-01T00:00:00Z", "timer_id": "a"}
    driver = Driver(scripted(answer(call("schedule_followup", **arguments)), answer("ok")))
    driver.user()
    assert driver.state.follow_ups["a"].fire_at == datetime(2001, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stop", "blocks", "said"),
    [
        ("end_turn", ("Yes.",), ["Yes."]),
        ("stop_sequence", ("Yes.",), ["Yes."]),
        ("max_tokens", ("Half an ans",), ["Half an ans\n\n[Cut off here"]),
        ("model_context_window_exceeded", ("Half",), ["Half\n\n[Cut off here"]),
        ("unknown", ("Yes.",), ["Yes."]),
        ("unknown", ("Yes.", call("send_message", text="half")), ["Yes."]),
        ("max_tokens", (call("send_message", text="half"),), ["My answer did not fit"]),
        ("model_context_window_exceeded", (), ["My answer did not fit"]),
        ("refusal", (), ["I can't help with that."]),
        ("end_turn", (), ["I have no answer"]),
        ("end_turn", ("  \n ",), ["I have no answer"]),
        ("unknown", (), ["I have no answer"]),
    ],
)
def test_every_stop_reason_ends_the_loop(
    stop: object, blocks: tuple[object, ...], said: list[str]
) -> None:
    driver = Driver(scripted(answer(*blocks, stop=stop)))  # type: ignore[arg-type]
    driver.user()
    assert driver.state.loop is None
    assert len(driver.texts) == len(said)
    for text, expected in zip(driver.texts, said, strict=True):
        assert text.startswith(expected)


def test_whoever_wrote_hears_something_once_if_the_model_has_no_words() -> None:
    """Also after its tools; what it said on its way is said. The turn notes it, for `why`."""
    used = call("schedule_followup", reason="r", delay_seconds=60, timer_id="a")
    driver = Driver(scripted(answer(used), answer()))
    driver.user()
    (text,) = driver.texts
    assert text.startswith("I used my tools")
    assert "empty_answer" in [note.code for note in driver.turns[-1].notes]
    assert driver.turns[-1].outcome == "answered"

    driver = Driver(scripted(answer("I'll set it.", used), answer()))
    driver.user()
    assert driver.texts == ["I'll set it."]


def test_pause_turn_goes_on() -> None:
    driver = Driver(scripted(answer("Searching", stop="pause_turn"), answer("Found it.")))
    driver.user()
    assert driver.texts == ["Found it."]
    assert len(driver.turns) == 2


def test_thinking_goes_back_with_the_call_it_led_to() -> None:
    thinking = OpaqueBlock(data={"type": "thinking", "thinking": "hm", "signature": "s"})
    driver = Driver(scripted(answer(thinking, call("no_such_tool")), answer(thinking, "ok")))
    driver.user()
    assert driver.turns[0].rows[1].blocks[0] == thinking
    assert driver.turns[1].rows[0].blocks == (TextBlock(text="ok"),)


def test_a_poison_event_is_passed_over_with_an_apology() -> None:
    """X-6."""
    driver = follow_up_driver()
    driver.user()
    cause = core.cause_of(99, _user(driver, "x"))
    draft = core.poison(KEY, driver.state, cause, "not JSON", driver.moment(), driver.policy)
    turn = driver.commit(draft)
    assert turn.outcome == "failed"
    assert driver.state.position == 99
    assert driver.state.follow_ups == {}
    assert "gave up" in driver.texts[-1]


def test_a_step_taken_over_too_often_is_given_up() -> None:
    """ARCHITECTURE 3, takeover."""
    driver = Driver()
    driver.commit(driver.fold(_user(driver, "one")))
    for expected in range(1, 5):
        draft = core.begin_takeover(KEY, driver.state, driver.moment(), driver.policy)
        driver.commit(draft)
        assert driver.state.attempt == expected
    driver.commit(core.give_up(KEY, driver.state, driver.moment(), driver.policy))
    assert driver.state.loop is None
    assert driver.state.attempt == 0
    assert "gave up" in driver.texts[0]
    driver.user("next")
    assert driver.texts[-1] == "Hello."


def test_a_locked_state_sends_nothing_autonomous_until_the_person_writes() -> None:
    """S-7: fail closed."""
    driver = follow_up_driver()
    driver.user()
    driver.state = msgspec.structs.replace(driver.state, is_locked=True)
    assert driver.timer("a")[0].outcome == "blocked"
    driver.user()
    driver.wait(1)
    assert driver.timer("a")[0].outcome == "answered"


def test_clear_policy_all_makes_direct_replies_voidable() -> None:
    """S-6."""
    driver = Driver(policy=Policy(clear_policy="all"))
    driver.user()
    assert driver.sends[0].payload.is_voidable


def test_the_same_inputs_give_byte_identical_turns() -> None:
    """ARCHITECTURE 7: replay."""

    def run() -> list[bytes]:
        driver = follow_up_driver()
        driver.user()
        driver.wait(20)
        driver.timer("a")
        driver.user("bye")
        return [encode(turn) for turn in driver.turns]

    assert run() == run()


@pytest.mark.parametrize("failure", [ValueError("401"), answer(stop="refusal"), answer("")])
def test_what_the_person_ordered_is_said_without_the_model(failure: Exception) -> None:
    """S-6: only cancelling ends a reminder; but a model that has nothing to say is silent."""
    plan = call("schedule_followup", timer_id="tea", delay_seconds=5, reason="drink tea", keep=True)
    driver = Driver(scripted(answer(plan), answer("I will."), failure))
    driver.user()
    driver.timer("tea")
    is_silent = isinstance(failure, ModelAnswer) and failure.stop_reason == "end_turn"
    assert driver.texts[1:] == ([] if is_silent else ["Reminder: drink tea"])
    assert not driver.state.follow_ups


def test_a_reminder_whose_step_kills_is_said_plainly() -> None:
    """S-6, X-5: its loop is given up, or its queued event, or that is passed over."""
    for way in ("loop", "queued", "poison", "night"):
        driver = Driver(lambda _: answer("Hello."))
        for name in ("a", "b"):
            kept = FollowUp(generation=1, fire_at=START, reason=name, keep=True)
            draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
            draft.open_follow_up(name, msgspec.structs.replace(kept, generation=draft.ordinal))
            driver.commit(draft)
        event = driver.timer_event("a")
        if way == "loop":
            driver.commit(driver.fold(event))
            given_up = core.give_up(KEY, driver.state, driver.moment(), driver.policy)
        elif way == "queued":
            state = msgspec.structs.replace(driver.state, queue=(Queued(seq=9, type="timer"),))
            given_up = core.give_up(KEY, state, driver.moment(), driver.policy, event)
        else:
            driver.quiet_until = START + timedelta(hours=8) if way == "night" else None
            cause = core.cause_of(driver.store(event), event)
            moment = driver.moment()
            given_up = core.poison(KEY, driver.state, cause, "x", moment, driver.policy, event)
        driver.commit(given_up)
        if way == "night":
            assert driver.state.follow_ups["a"].message == "Reminder: a"
            assert driver.texts == []
        else:
            assert driver.texts == ["Reminder: a"]
            assert list(driver.state.follow_ups) == ["b"]


def test_a_result_that_was_ordered_is_told_of_without_the_model() -> None:
    """The same for what a worker found."""
    task = Task(
        tool="spawn_worker", title="look it up", due_at=START, generation=1, is_ordered=True
    )
    driver = Driver(scripted(ValueError("401")))
    driver.state = msgspec.structs.replace(driver.state, tasks={"x": task})
    driver.feed(driver.result_event("x", "found"))
    (text,) = driver.texts
    assert "look it up" in text
    assert not driver.state.tasks


def test_an_interrupted_reminder_keeps_its_place() -> None:
    """S-8: those that are due together come in their order, however often the person writes."""
    driver = Driver(lambda draft: answer(f"re: {draft.loop.timer_id or 'person'}"))
    for name in ("a", "b", "c"):
        draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
        kept = FollowUp(generation=draft.ordinal, fire_at=START, reason=name, keep=True)
        draft.open_follow_up(name, kept)
        driver.commit(draft)
    first = driver.fold(driver.timer_event("a"))
    driver.commit(first)
    for name in ("b", "c"):
        driver.commit(driver.fold(driver.timer_event(name)))
    driver.commit(driver.fold(driver.message("hi")))
    assert "put_back" in driver.notes
    driver.settle()
    assert driver.texts == ["re: person", "re: a", "re: b", "re: c"]


def test_what_is_planned_between_two_messages_that_waited_is_void() -> None:
    """S-6: the answer to the first of them doesn't know of the second. Found by `test_life`."""
    plan = call("schedule_followup", timer_id="mine", delay_seconds=5, reason="r")
    driver = Driver(scripted(answer("one"), answer(plan), answer("two"), answer("three")))
    driver.meanwhile(driver.message("1"), driver.message("2"), driver.message("3"))
    assert driver.texts == ["one", "two", "three"]
    assert not driver.state.follow_ups
    assert driver.notes == ["void"]


def test_a_follow_up_that_an_overtaken_answer_makes_is_void() -> None:
    """S-6: it was planned without the newest message; a reminder stays, and so does one that a
    repeat of the same message only seems to overtake."""
    plan = {"delay_seconds": 5, "reason": "r"}
    made = answer(
        call("schedule_followup", timer_id="mine", **plan),
        call("schedule_followup", timer_id="theirs", keep=True, **plan),
    )
    for other, names in (("two", ["theirs"]), ("one", ["mine", "theirs"])):
        driver = Driver(scripted(made, answer("planned")))
        first = UserMessage(
            id="one", session_key=KEY, created_at=START,
            payload=UserMessagePayload(text="one", is_keyed=True),
        )  # fmt: skip
        driver.meanwhile(first, msgspec.structs.replace(first, id=other))
        assert sorted(driver.state.follow_ups) == names
        assert driver.notes.count("void") == (other == "two")
