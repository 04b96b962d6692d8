"""Tool calls that other services run, in the core (SPEC S-12, I-2, X-3; ARCHITECTURE 4)."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from services.cortex import core
from services.cortex.core import Policy
from services.cortex.core.context.history import trim
from services.cortex.core.context.window import Window, tokens_of_rows
from services.cortex.core.tools.calls import INPUT_BYTES_MAX
from services.cortex.history import History
from services.cortex.models.messages import NO_RESULT, messages_of
from services.cortex.session.headers import letters_of
from tests.cortex.driver import KEY, Driver, answer, call
from tests.cortex.test_core import scripted
from vigil.contracts import (
    TURN_BYTES_MAX,
    Cause,
    Row,
    SaveMemory,
    SaveMemoryPayload,
    ScheduleTimer,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    encode,
)

RESULT_LENGTH_MAX = Policy().result_length_max


def save(content: str = "Ann likes tea", call_id: str = "") -> ToolUseBlock:
    block = call("memory_save", content=content)
    return msgspec.structs.replace(block, id=call_id or f"call-{content[:20]}")


def rows_of(driver: Driver) -> list[Row]:
    return [row for turn in driver.turns for row in turn.rows]


def results_of(turn: Turn) -> list[ToolResultBlock]:
    blocks = [block for row in turn.rows for block in row.blocks]
    return [block for block in blocks if isinstance(block, ToolResultBlock)]


def waiting_driver(*calls: ToolUseBlock, policy: Policy | None = None) -> Driver:
    """A session whose loop waits for these calls; then the agent says "Done."."""
    driver = Driver(scripted(answer("Let me.", *calls), answer("Done.")), policy)
    driver.user("remember that I like tea")
    return driver


def test_a_memory_tool_is_an_effect_and_its_result_an_event() -> None:
    """S-12: every model answer is a turn, every tool call an effect, every result an event."""
    driver = waiting_driver(save())
    (asked,) = driver.turns
    assert asked.outcome == "continued"
    assert core.owes(asked.state) is None, "no model call is owed while a service runs the tool"
    (effect,) = driver.called
    assert effect.payload.service == "memory"
    assert effect.payload.input == {"content": "Ann likes tea"}
    assert effect.payload.caused_by == "e3"
    assert effect.payload.due_at == driver.now + timedelta(seconds=30)
    assert driver.scheduled[("_call", asked.ordinal)] == effect.payload.due_at
    assert driver.texts == []
    (after,) = driver.result(effect.id)
    assert driver.texts == ["Done."]
    assert after.outcome == "answered"
    assert after.event == asked.event
    assert results_of(after) == [
        ToolResultBlock(tool_use_id="call-Ann likes tea", content="Saved.")
    ]
    assert after.ended == ("e6", "e3")
    assert driver.open_in_log() == set(), "the deadline is taken back"


def test_the_model_is_asked_once_all_results_are_there() -> None:
    """S-12: one deadline for the calls of one answer; each result is a turn."""
    driver = waiting_driver(save("a"), save("b"), save("c"))
    first, second, third = driver.open_calls()
    assert [e.payload.timer_id for t in driver.turns for e in t.effects
            if isinstance(e, ScheduleTimer)] == ["_call"]  # fmt: skip
    (one,) = driver.result(second, "B")
    (two,) = driver.result(first, "A")
    assert [one.outcome, two.outcome] == ["continued", "continued"]
    assert one.usage == two.usage == ()
    assert driver.texts == []
    (last,) = driver.result(third, "C")
    assert last.usage
    assert driver.texts == ["Done."]
    told = messages_of([row for row in rows_of(driver) if row.source != "agent" or row.blocks])
    results = [block for block in told[2]["content"] if block["type"] == "tool_result"]
    assert [block["content"] for block in results] == ["A", "B", "C"], "in the order of the calls"


def test_what_the_core_answers_stands_in_the_same_turn() -> None:
    """S-12: tools of three kinds in one answer: the core's, memory's, unknown ones."""
    driver = waiting_driver(
        call("schedule_followup", delay_seconds=9, reason="x", message="Tea."),
        save(),
        call("no_such_tool"),
    )
    (asked,) = driver.turns
    told = results_of(asked)
    assert [block.tool_use_id for block in told] == ["call-schedule_followup", "call-no_such_tool"]
    assert [block.is_error for block in told] == [False, True]
    assert len(driver.open_calls()) == 1
    driver.result()
    assert driver.texts == ["Done."]


@pytest.mark.parametrize(
    "arguments", [{}, {"content": ""}, {"content": 3}, {"content": "x", "y": 1}]
)
def test_arguments_that_do_not_fit_never_leave_the_core(arguments: dict[str, Any]) -> None:
    """X-6: the model reads what is wrong, at once."""
    driver = Driver(scripted(answer(call("memory_save", **arguments)), answer("Sorry.")))
    first, _ = driver.user()
    (told,) = results_of(first)
    assert told.is_error
    assert "schema" in told.content
    assert driver.called == []
    assert driver.texts == ["Sorry."]


def test_too_many_calls_are_refused_and_the_rest_is_run() -> None:
    policy = Policy(autonomy_enabled=True, tool_calls_max=2)
    driver = waiting_driver(save("a"), save("b"), save("c"), policy=policy)
    assert len(driver.open_calls()) == 2
    (told,) = results_of(driver.turns[0])
    assert "Too many" in told.content


def test_a_turn_stays_small_enough_whatever_the_arguments_and_results_are() -> None:
    """ARCHITECTURE 2: a turn is at most 512 kB, with 20 calls of the largest content, too."""
    driver = waiting_driver(*[save(str(i) + "é" * 3_000, f"c{i}") for i in range(20)])
    (asked,) = driver.turns
    sizes = [len(encode(e.payload.input)) for e in driver.called]
    assert sum(sizes) <= INPUT_BYTES_MAX + 1024
    assert any("too much for one answer" in block.content for block in results_of(asked))
    while driver.open_calls():
        driver.result(content="\x01" * 1_000_000)
    effects = [sum(len(encode(e)) for e in turn.effects) for turn in driver.turns]
    assert max(effects) < TURN_BYTES_MAX / 4
    assert all(len(encode(turn)) < TURN_BYTES_MAX for turn in driver.turns[1:])
    (told,) = results_of(driver.turns[1])
    assert f"[... {1_000_000 - RESULT_LENGTH_MAX} bytes left out ...]" in told.content


def test_the_results_of_twenty_calls_fit_into_one_request() -> None:
    """I-2: the calls and ALL their results are shown together."""
    driver = waiting_driver(*[save(f"m{i}", f"c{i}") for i in range(20)])
    while driver.open_calls():
        driver.result(content="r" * RESULT_LENGTH_MAX)
    kept = trim(rows_of(driver), 190_000)
    assert kept[0].source == "person"
    assert sum(isinstance(b, ToolResultBlock) for row in kept for b in row.blocks) == 20


def test_results_that_are_too_much_are_shown_with_their_call() -> None:
    """I-2: rather a request that no model takes, and an apology, than one that asks nothing."""
    driver = waiting_driver(*[save(f"m{i}", f"c{i}") for i in range(20)])
    while driver.open_calls():
        driver.result(content="r" * RESULT_LENGTH_MAX)
    kept = trim(rows_of(driver)[:-1], 20_000)
    assert kept[0].role == "assistant"
    assert sum(isinstance(b, ToolResultBlock) for row in kept for b in row.blocks) == 20


def test_many_calls_do_not_push_the_question_out() -> None:
    """I-2: results that came one by one are one row of the 80."""
    steps = [answer(*[save(f"m{n}-{i}", f"c{n}-{i}") for i in range(20)]) for n in range(8)]
    driver = Driver(scripted(*steps, answer("Done.")))
    driver.user("remember all that")
    history = History(80, 200_000)
    while driver.open_calls():
        driver.result()
    for turn in driver.turns:
        history.add(turn.ordinal, turn)
    shown = history.rows([], Window(context_tokens=200_000))
    assert len(shown) > 160
    assert shown[0].source == "person"
    assert history.first_turn(0) == 1


def test_a_call_and_its_results_are_dropped_together() -> None:
    """I-2: never split, wherever the cut falls."""
    driver = waiting_driver(save("a", "c1"), save("b", "c2"), save("c", "c3"))
    while driver.open_calls():
        driver.result()
    rows = [*rows_of(driver), Row(role="user", blocks=(TextBlock(text="so"),), at=driver.now,
                                  source="person")]  # fmt: skip
    for tokens_max in range(1, tokens_of_rows(rows) + 1):
        blocks = [block for row in trim(rows, tokens_max) for block in row.blocks]
        called = {b.id for b in blocks if isinstance(b, ToolUseBlock)}
        told = {b.tool_use_id for b in blocks if isinstance(b, ToolResultBlock)}
        assert called in (set(), {"c1", "c2", "c3"})
        assert told == called


# ---------------------------------------------------------------- repeats, and what comes late


def test_a_result_counts_once() -> None:
    """ARCHITECTURE 4: the first result wins in the fold."""
    driver = waiting_driver(save("a"), save("b"))
    first, second = driver.open_calls()
    driver.result(first, "A")
    (repeat,) = driver.result(first, "another")
    assert repeat.outcome == "ignored"
    assert [(n.code, n.subject) for n in repeat.notes] == [("late_result", first)]
    assert repeat.rows == ()
    driver.result(second, "B")
    (late,) = driver.result(second, "again")
    assert late.outcome == "ignored"
    assert driver.texts == ["Done."]
    contents = [block.content for turn in driver.turns for block in results_of(turn)]
    assert contents == ["A", "B"]


def test_the_deadline_ends_what_is_open_and_the_loop_goes_on() -> None:
    """S-12: nothing waits for ever."""
    driver = waiting_driver(save("a"), save("b"))
    first, second = driver.open_calls()
    driver.result(first, "A")
    driver.wait(30)
    (turn,) = driver.call_deadline()
    assert driver.texts == ["Done."]
    assert [(n.code, n.text) for n in turn.notes] == [
        ("no_result", "memory_save gave no answer within 30 s")
    ]
    (told,) = results_of(turn)
    assert told.is_error
    assert told.content == "There was no answer within 30 s."
    (late,) = driver.result(second)
    assert late.outcome == "ignored"


def test_a_deadline_of_calls_that_are_over_changes_nothing() -> None:
    driver = waiting_driver(save())
    generation = driver.turns[0].ordinal
    driver.result()
    (stale,) = driver.call_deadline(generation)
    assert [n.code for n in stale.notes] == ["stale_deadline"]


def test_calls_of_a_later_answer_have_a_deadline_of_their_own() -> None:
    driver = Driver(scripted(answer(save("a")), answer(save("b")), answer("Done.")))
    driver.user()
    old = driver.turns[-1].ordinal
    driver.result()
    (stale,) = driver.call_deadline(old)
    assert stale.outcome == "ignored"
    assert len(driver.open_calls()) == 1
    driver.call_deadline()
    assert driver.texts == ["Done."]


# ---------------------------------------------------------------- what closes the loop meanwhile


def assert_usable(driver: Driver) -> None:
    """The rows make a conversation that the Messages API accepts."""
    messages = messages_of(rows_of(driver))
    for before, message in pairwise(messages):
        called = [b["id"] for b in before["content"] if b["type"] == "tool_use"]
        told = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        assert told == called
        assert before["role"] != message["role"]


def test_a_user_message_waits_for_the_results_and_is_answered_then() -> None:
    """S-13 `enqueue`: the loop's results still count."""
    driver = Driver(scripted(answer(save()), answer("Noted."), answer("And hello.")))
    driver.user("remember it")
    (queued,) = driver.user("hello?")
    assert queued.outcome == "queued"
    driver.result()
    assert driver.texts == ["Noted.", "And hello."]
    assert_usable(driver)


def test_an_interrupted_loop_leaves_usable_rows() -> None:
    """S-13 `interrupt`: the open call is told to have no result; its own, late, changes nothing."""
    policy = Policy(autonomy_enabled=True, double_text="interrupt")
    driver = Driver(scripted(answer(save("a"), save("b")), answer("Hello.")), policy)
    driver.user("remember it")
    first, second = driver.open_calls()
    driver.result(first, "A")
    driver.user("never mind that")
    assert driver.texts == ["Hello."]
    assert driver.open_in_log() == set()
    assert_usable(driver)
    contents = [
        block["content"]
        for message in messages_of(rows_of(driver))
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert contents == ["A", NO_RESULT]
    (late,) = driver.result(second)
    assert late.outcome == "ignored"


def test_stop_closes_the_calls() -> None:
    driver = waiting_driver(save())
    (effect,) = driver.called
    (stopped,) = driver.control("stop")
    assert stopped.outcome == "stopped"
    assert stopped.state.loop is None
    assert driver.open_in_log() == set()
    (late,) = driver.result(effect.id)
    assert late.outcome == "ignored"
    driver.user("and now?")
    assert_usable(driver)


def test_a_follow_ups_loop_is_closed_by_the_person() -> None:
    """S-6: what the agent does by itself ends when the person writes, with its calls."""
    plan = call("schedule_followup", timer_id="a", delay_seconds=1, reason="look")
    driver = Driver(scripted(answer(plan), answer("ok"), answer(save()), answer("Hello.")))
    driver.user()
    driver.wait(1)
    driver.timer("a")
    assert len(driver.open_calls()) == 1
    driver.user("I'm here")
    assert driver.state.loop is None
    assert driver.texts == ["ok", "Hello."]
    assert all(timer_id == "a" for timer_id, _ in driver.open_in_log())
    assert_usable(driver)


def test_the_last_allowed_step_asks_for_nothing() -> None:
    """S-12: ten model calls; nobody would read the result of what the last one asks for."""
    policy = Policy(autonomy_enabled=True, calls_max=1)
    driver = waiting_driver(save(), policy=policy)
    (turn,) = driver.turns
    assert "calls_max" in driver.notes
    assert driver.texts == ["Let me."]
    assert turn.state.loop is None
    assert driver.called == []
    (told,) = results_of(turn)
    assert told.is_error


def test_a_deadline_that_can_not_be_handled_ends_the_loop() -> None:
    """X-6: whatever kills the handling of the deadline, the loop doesn't wait for ever."""
    driver = waiting_driver(save())
    loop = driver.state.loop
    assert loop is not None
    assert loop.waiting is not None
    event = driver.timer_event("_call", loop.waiting.generation)
    event = msgspec.structs.replace(
        event, payload=msgspec.structs.replace(event.payload, kind="deadline")
    )
    seq = driver.store(event)
    cause = Cause(id=event.id, seq=seq, type="timer")
    draft = core.poison(KEY, driver.state, cause, "why", driver.moment(), driver.policy, event)
    turn = driver.commit(draft)
    assert turn.state.loop is None
    assert turn.ended == (event.id, "e3")
    assert "gave up" in driver.texts[-1]


# ---------------------------------------------------------------- taint


def test_a_tainted_result_taints_the_loop() -> None:
    """X-3: from then on the loop may not do what descends from untrusted content may not."""
    reminder = call("schedule_followup", timer_id="r", delay_seconds=60, reason="x", keep=True)
    plan = call("schedule_followup", timer_id="p", delay_seconds=60, reason="x")
    driver = Driver(
        scripted(
            answer(call("memory_recall", query="tea")),
            answer(reminder, plan, save(), call("send_message", text="Hi", channel="ops")),
            answer("Done."),
        ),
        Policy(autonomy_enabled=True, channels=("ops",), route="ops"),
    )
    driver.user("what about tea?")
    assert not driver.called[0].payload.is_tainted
    (turn,) = driver.result(content="From a web page: …", is_tainted=True)
    assert turn.state.loop is not None
    assert turn.state.loop.taint
    assert "r" not in turn.state.follow_ups
    (planned,) = turn.state.follow_ups.values()
    assert planned.is_tainted
    assert driver.called[1].payload.is_tainted
    assert [a.tool for a in turn.state.approvals.values()] == ["schedule_followup", "send_message"]
    driver.result()
    assert {send.payload.channel for send in driver.sends} == {"socket"}
    assert driver.texts[-1] == "Done."
    assert all(send.payload.is_tainted for send in driver.sends)
    assert not driver.sends[-1].payload.is_autonomous, "an answer all the same"


def test_a_reminder_that_takes_in_untrusted_content_is_said_once() -> None:
    """S-6, S-7, X-3: what the person ordered comes; what such content adds is gated."""
    plan = call("schedule_followup", timer_id="r", delay_seconds=1, reason="tea", keep=True)
    more = [call("send_message", text=text) for text in ("Tea!", "And a link.")]
    driver = Driver(
        scripted(answer(plan), answer("ok"), answer(call("memory_recall", query="tea")),
                 answer(*more), answer()),
        Policy(autonomy_enabled=True, max_consecutive=0),
    )  # fmt: skip
    driver.user()
    driver.wait(1)
    driver.timer("r")
    driver.result(content="From a page", is_tainted=True)
    assert driver.texts == ["ok", "Tea!"]
    assert "blocked_cap" in driver.notes


def test_a_trusted_result_does_not() -> None:
    driver = waiting_driver(save())
    driver.result()
    assert not driver.sends[0].payload.is_tainted


# ---------------------------------------------------------------- on the log


def test_its_letters_bring_memory_a_turn() -> None:
    """ARCHITECTURE 4: others aren't even brought the turn."""
    driver = waiting_driver(save())
    (asked,) = driver.turns
    (after,) = driver.result()
    assert letters_of(asked) == "tm"
    assert letters_of(after) == "st"
    payload = SaveMemoryPayload(content="x", type="fact", source="chat:t1")
    silent = msgspec.structs.replace(
        after, effects=(SaveMemory(id="0" * 32, ordinal=1, payload=payload),)
    )
    assert letters_of(silent) == "m"


def test_replay_gives_the_same_turns() -> None:
    """S-5: the same decisions again are the same effects."""

    def live() -> Driver:
        driver = Driver(scripted(answer(save("a"), save("b")), answer("Done.")))
        driver.user()
        driver.result(content="A")
        driver.wait(30)
        driver.call_deadline()
        return driver

    assert [encode(t) for t in live().turns] == [encode(t) for t in live().turns]
