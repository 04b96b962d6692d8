"""Stories of every kind of end, told from records in memory (SPEC D-3)."""

from __future__ import annotations

import pytest

from services.gateway.why import answer as answers
from services.gateway.why import stories
from services.gateway.why.answer import WhyAnswer
from services.gateway.why.facts import Fact, LetterFact
from tests.support.why import (
    KEY,
    E,
    Log,
    at,
    autonomous,
    cancel,
    of,
    open_state,
    planned,
    remembering,
    result_row,
    schedule,
    send,
    texts,
    webhook,
)
from vigil.contracts import (
    Effect,
    FollowUp,
    Note,
    ScheduleTimer,
    ScheduleTimerPayload,
    State,
    Usage,
)
from vigil.contracts.events import Attachment

# ---------------------------------------------------------------- messages


def test_an_admin_reads_the_persons_name() -> None:
    log = Log()
    spoke = log.said_by_person()
    turn = log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    log.said(E, turn)
    fact = log.fact(3)
    assert fact is not None
    answer = log.why(stories.of_record(KEY, fact), is_asking=False)
    assert answer.summary == "It was said, as the answer to what ann wrote."
    assert "ann wrote: “hi”" in texts(answer)


def test_what_was_attached_is_named() -> None:
    log = Log()
    plan = Attachment(hash="0f", name="plan.pdf", type="application/pdf", size=40_200, pages=2)
    spoke = log.said_by_person("fits?", files=(plan,))
    turn = log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    answer = of(log, log.said(E, turn))
    assert "wrote: “fits?”, and attached plan.pdf, 2 pages, 41 kB" in texts(answer)


def test_a_follow_up_goes_back_to_the_first_cause() -> None:
    """D-3: message, turn, timer, turn, claim; what was planned besides is counted."""
    log = Log()
    spoke = log.said_by_person("make tea")
    effects: tuple[Effect, ...] = (schedule("tea", 1), schedule("cake", 1))
    log.turn(spoke, "answered", state=open_state(1, "tea", 1), effects=effects, ended=(spoke.id,))
    log.said_by_person("another thing")  # no part of the story
    due = log.due("tea", 1, late_s=5)
    turn = log.turn(due, "answered", effects=(autonomous(E, due.id),), ended=(due.id,))
    answer = of(log, log.said(E, turn, is_autonomous=True))
    assert answer.summary == "It was said: it came due as planned, and nothing held it back."
    assert [step.seq for step in answer.steps] == [1, 2, 2, 2, 4, 5, 5, 6]
    assert "5.0 s late" in texts(answer)
    assert "the reason: “look”" in texts(answer)
    assert "It planned 1 other follow-up, too." in texts(answer)


@pytest.mark.parametrize(("late_s", "told"), [(1.5, "1.5 s late"), (31_222_833, "361 d late")])
def test_how_late_it_was_is_told_as_people_say_it(late_s: float, told: str) -> None:
    log = Log()
    spoke = log.said_by_person("make tea")
    state, effects = open_state(1, "tea", 1), (schedule("tea", 1),)
    log.turn(spoke, "answered", state=state, effects=effects, ended=(spoke.id,))
    due = log.due("tea", 1, late_s=late_s)
    turn = log.turn(due, "answered", effects=(autonomous(E, due.id),), ended=(due.id,))
    assert told in texts(of(log, log.said(E, turn, is_autonomous=True)))


def test_a_decided_message_that_delivery_has_not_said() -> None:
    log = Log()
    spoke = log.said_by_person()
    log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    answer = log.why(stories.of_send(KEY, E, log.fact(2)))
    assert answer.verdict == "pending"


# ---------------------------------------------------------------- channels


def test_a_webhook_between_two_tries_and_in_the_middle_of_one() -> None:
    log = Log()
    said = webhook(log)
    log.attempt(E, 1, "begun")
    assert of(log, said).verdict == "pending"
    assert "Attempt 1 began." in texts(of(log, said))
    log.attempt(E, 1, "refused", reason="503 Service Unavailable", status=503, next_at=at(99))
    answer = of(log, said)
    assert answer.verdict == "retrying"
    assert "503 Service Unavailable; it is tried again at 2031-03-03 09:01:39 UTC" in answer.summary


def test_a_webhook_that_a_person_requeued() -> None:
    """S-10: what counts is what came after the newest order."""
    log = Log()
    said = webhook(log)
    log.attempt(E, 1, "refused", reason="500 Internal Server Error")
    log.receipt(E, "failed", "500 Internal Server Error; 1 try")
    letter = LetterFact(id="delivery-SESSIONS-4", service="delivery", seq=4, cause="failed: 500",
                        at=at(7), effect_id=E)  # fmt: skip
    log.letters.append(Fact(seq=1, stream="DEAD", body=letter))
    failed = of(log, said)
    assert failed.verdict == "failed"
    assert "It is the dead letter delivery-SESSIONS-4." in failed.summary
    log.dispatch(E, said, requeued_by="root")
    requeued = of(log, said)
    assert requeued.verdict == "pending"
    assert "root requeued it for the channel “ops”." in texts(requeued)
    log.attempt(E, 1, "begun")
    log.receipt(E, "delivered", "200 OK")
    answer = of(log, said)
    assert answer.verdict == "delivered"
    assert answer.summary.startswith("It was said, and the channel “ops” took it")
    about_letter = log.why(stories.of_letter(KEY, log.letters[0], E, 4))
    assert (about_letter.kind, about_letter.verdict) == ("dead_letter", "delivered")
    assert about_letter.id == "delivery-SESSIONS-4"


def test_a_webhook_that_was_dropped_or_never_was_a_channel() -> None:
    log = Log()
    said = webhook(log)
    log.receipt(E, "dropped", "the person has spoken (sequence 9); 2 tries")
    assert "was not sent to the channel “ops”: you have spoken" in of(log, said).summary
    assert of(log, said).verdict == "dropped"
    other = Log()
    spoke = other.said_by_person()
    other.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    answer = of(other, other.receipt(E, "failed", "no channel named 'x'"))
    assert answer.summary == "It was not said: no channel named 'x'."


# ---------------------------------------------------------------- follow-ups


def timer(log: Log, timer_id: str = "tea", generation: int = 1) -> WhyAnswer:
    return log.why(stories.of_timer(KEY, timer_id, generation))


def test_a_follow_up_that_is_still_open() -> None:
    log = Log()
    planned(log)
    assert timer(log).summary == "It is planned for 2031-03-03 09:01:00 UTC."
    log.turn(log.said_by_person(), "answered", state=open_state(2, "tea", 1, keep=True))
    assert timer(log).verdict == "pending", "later turns carry it on"


def test_a_follow_up_that_was_replaced_cancelled_or_cleared() -> None:
    log = Log()
    planned(log)
    spoke = log.said_by_person("later, please")
    log.turn(
        spoke, "answered", state=open_state(2, "tea", 2), ended=(spoke.id,),
        effects=(cancel("tea", 1), schedule("tea", 2, 600)),
    )  # fmt: skip
    assert timer(log).verdict == "replaced"
    order = log.control("cancel_timer", timer_id="tea")
    note = Note(code="cancelled", text="a person cancelled it", subject="tea")
    log.turn(order, "cleared", effects=(cancel("tea", 2),), notes=(note,), ended=(order.id,))
    cancelled = timer(log, generation=2)
    assert cancelled.verdict == "cancelled"
    assert "You cancelled “tea”." in texts(cancelled)
    other = Log()
    planned(other)
    order = other.control("clear_follow_ups", reason="the services were restarted")
    note = Note(code="void", text="the services were restarted", subject="tea")
    other.turn(order, "cleared", effects=(cancel("tea", 1),), notes=(note,), ended=(order.id,))
    answer = timer(other)
    assert answer.summary == "It was not said: the services were restarted."


def test_a_follow_up_that_was_held_back_twice_and_then_said() -> None:
    """S-7: one story over its generations."""
    log = Log()
    planned(log)
    for generation in (1, 2):
        due = log.due("tea", generation)
        note = Note(code="held", text="quiet hours: put off to 07:00", subject="tea")
        log.turn(
            due, "held", state=open_state(generation + 1, "tea", generation + 1), notes=(note,),
            effects=(schedule("tea", generation + 1),), ended=(due.id,),
        )  # fmt: skip
    held = timer(log)
    assert held.verdict == "held"
    due = log.due("tea", 3)
    turn = log.turn(due, "answered", effects=(autonomous(E, due.id),), ended=(due.id,))
    said = log.said(E, turn, is_autonomous=True)
    for answer in (timer(log), timer(log, generation=3), of(log, said)):
        assert answer.verdict == "said"
        assert texts(answer).count("held back by quiet hours") == 2
        assert answer.steps[0].text == "You wrote: “make tea”"


def test_a_follow_up_voided_while_the_agent_was_at_it() -> None:
    """S-6: the exchange that the message closed is told with it, by event and by timer."""
    log = Log()
    planned(log)
    due = log.due("tea", 1)
    log.turn(due, "begun")
    spoke = log.said_by_person("stop that")
    note = Note(code="void", text="the person spoke first", subject="tea")
    log.turn(spoke, "begun", notes=(note,), ended=(due.id,))
    for answer in (timer(log), of(log, due.seq)):
        assert answer.verdict == "void", answer
        assert answer.summary.startswith("It was not said: you wrote first")


def test_a_blocked_follow_up_tells_what_filled_the_cap() -> None:
    log = Log()
    planned(log)
    previous = None
    for number in range(3):
        due = log.due(f"t{number}", 1)
        effect_id = str(number) * 32
        turn = log.turn(
            due, "answered", state=open_state(2 + number, "tea", 1), ended=(due.id,),
            effects=(autonomous(effect_id, due.id, previous=previous),),
        )  # fmt: skip
        log.said(effect_id, turn, f"number {number}", is_autonomous=True)
        previous = effect_id
    due = log.due("tea", 1)
    text = "3 messages in a row without an answer from the person; the cap is 3"
    note = Note(code="blocked_cap", text=text, subject="tea")
    log.turn(due, "blocked", state=State(turns=5, last_send=previous), notes=(note,),
             ended=(due.id,))  # fmt: skip
    answer = timer(log)
    assert answer.verdict == "blocked"
    assert answer.summary == (
        "It was not said: 3 messages in a row without an answer from you; the cap is 3."
    )
    assert [n for n in range(3) if f"“number {n}”" in texts(answer)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("code", "outcome", "verdict_word"),
    [
        ("blocked_cooldown", "blocked", "blocked"),
        ("blocked_disabled", "blocked", "blocked"),
        ("blocked_locked", "blocked", "blocked"),
        ("blocked_no_room", "blocked", "blocked"),
        ("blocked_ordered_rate", "blocked", "blocked"),
        ("queue_full", "ignored", "dropped"),
        ("stale_timer", "ignored", "ignored"),
        ("dead_letter", "failed", "failed"),
        ("gave_up", "failed", "failed"),
        ("model_failed", "failed", "failed"),
        ("silent", "silent", "silent"),
    ],
)
def test_a_due_follow_up_that_came_to_nothing(code: str, outcome: str, verdict_word: str) -> None:
    """D-3: each with its own reason in the last sentence."""
    log = Log()
    planned(log)
    due = log.due("tea", 1)
    note = Note(code=code, text="for this reason", subject="tea")
    log.turn(due, outcome, notes=(note,), ended=(due.id,))
    for answer in (timer(log), of(log, due.seq)):
        assert answer.verdict == verdict_word
        assert "for this reason" in answer.summary


# ---------------------------------------------------------------- events and turns


def test_an_untrusted_event_from_outside_and_what_came_of_it() -> None:
    """X-3: the mark is told, at the event and at what descends from it."""
    log = Log()
    event = log.external(
        source="hook:ci", content='{"status":"red"}', kind="build.failed", origin="ci.example"
    )
    effect = autonomous(E, event.id, is_tainted=True, tag=None)
    turn = log.turn(event, "answered", effects=(effect,), ended=(event.id,))
    log.said(E, turn, is_autonomous=True, is_tainted=True, caused_by=event.id)
    answer = of(log, event.seq)
    assert answer.verdict == "said"
    assert "An untrusted event of the kind build.failed from ci.example came in by hook:ci" in (
        texts(answer)
    )
    assert "it descends from untrusted content" in texts(answer)
    assert "the agent decided to by itself" in answer.summary
    blocked = Log()
    event = blocked.external(source="bus:ci", content="x", is_trusted=True)
    note = Note(code="blocked_cap", text="3 messages in a row", subject=event.id)
    blocked.turn(event, "blocked", notes=(note,), ended=(event.id,))
    answer = of(blocked, event.seq)
    assert answer.verdict == "blocked"
    assert "A trusted event came in by bus:ci" in texts(answer)


def test_a_step_tells_what_its_call_took_and_why_of_that_model() -> None:
    """L-23, L-24: the tokens, those from the provider's cache among them, and the tier's reason."""
    log = Log()
    spoke = log.said_by_person()
    used = Usage(
        model="m", input_tokens=100, output_tokens=20, cache_read_tokens=8_000,
        cache_write_tokens=1_900, tier="main", tier_reason="kind channel",
    )  # fmt: skip
    log.turn(spoke, "silent", usage=(used,), ended=(spoke.id,))
    log.turn(spoke, "silent", usage=(Usage(model="rehearsal", input_tokens=7),))
    assert (
        "(turn 1, model m, main tier by its kind channel: 10,000 tokens, 8,000 of them cached, "
        "and 20 of answer)."
    ) in texts(of(log, spoke.seq))


def test_a_model_that_failed_is_asked_again() -> None:
    log = Log()
    spoke = log.said_by_person()
    note = Note(code="model_retry", text="attempt 1 failed (529); again in 2 s")
    retry = ScheduleTimer(
        id="r", ordinal=1,
        payload=ScheduleTimerPayload(
            timer_id="_retry", generation=1, fire_at=at(4), kind="deadline"
        ),
    )  # fmt: skip
    log.turn(spoke, "waiting", notes=(note,), effects=(retry,))
    waiting = of(log, spoke.seq)
    assert (waiting.verdict, "529" in waiting.summary) == ("retrying", True)
    assert "It tries again at 2031-03-03 09:00:04 UTC." in texts(waiting)
    deadline = log.due("_retry", 1, kind="deadline")
    turn = log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    log.said(E, turn)
    assert of(log, spoke.seq).verdict == "said"
    assert of(log, deadline.seq).steps[0].text == "You wrote: “hi”"


def test_a_fallback_is_named() -> None:
    """C-9: where it took over, and in each exchange that it thought in."""
    log = Log()
    spoke = log.said_by_person()
    taken = Note(code="model_fallback", text="small until noon, since attempt 2 failed (529)")
    log.turn(spoke, "continued", notes=(taken,))
    away = Note(code="model_away", text="small answered, the fallback")
    turn = log.turn(spoke, "answered", notes=(away,), effects=(send(E, spoke.id),))
    told = texts(of(log, log.said(E, turn)))
    assert "Another model took over: small until noon, since attempt 2 failed (529)." in told
    assert "Another model thought: small answered, the fallback." in told


def test_a_message_that_was_queued_then_stopped() -> None:
    log = Log()
    first, second = log.said_by_person("one"), log.said_by_person("two")
    log.turn(first, "begun")
    log.turn(second, "queued")
    assert of(log, second.seq).verdict == "pending"
    order = log.control("stop", reason="enough")
    note = Note(code="stopped", text="enough")
    log.turn(order, "stopped", notes=(note,), ended=(first.id, order.id))
    stopped = of(log, first.seq)
    assert (stopped.verdict, stopped.summary) == ("stopped", "It was not said: enough.")
    assert "You asked to stop the running turn (enough)." in texts(of(log, order.seq))


def test_messages_that_were_answered_together_and_one_that_was_interrupted() -> None:
    """S-13: the answer to the last is the answer to all of them."""
    log = Log()
    first, last = log.said_by_person("one"), log.said_by_person("two")
    note = Note(code="joined", text=f"answered together with {last.id}", subject=first.id)
    turn = log.turn(
        last, "answered", notes=(note,), effects=(send(E, last.id),), ended=(first.id, last.id)
    )
    log.said(E, turn, caused_by=last.id)
    assert of(log, first.seq).verdict == "said"
    other = Log()
    first = other.said_by_person("one")
    other.turn(first, "begun")
    last = other.said_by_person("two")
    note = Note(
        code="interrupted", subject=first.id, text="the person wrote again before it was answered"
    )
    other.turn(last, "begun", notes=(note,), ended=(first.id,))
    answer = of(other, first.seq)
    assert (answer.verdict, answer.summary) == (
        "stopped", "It was not said: you wrote again before it was answered.",
    )  # fmt: skip
    assert "The agent took note (turn 2)." in texts(answer)
    assert "The agent took it up (turn 2)." in texts(of(other, last.seq))


def test_a_turn_that_left_its_work_open_is_told_to_the_end() -> None:
    """D-3: a turn that used a tool, or let a message wait, isn't "not over yet" for ever."""
    log = Log()
    spoke = log.said_by_person("one")
    log.turn(spoke, "continued")
    assert of(log, 2).verdict == "pending"
    turn = log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    log.said(E, turn, caused_by=spoke.id)
    assert (of(log, 2).verdict, of(log, 3).verdict) == ("said", "said")
    interrupted = Log()
    first = interrupted.said_by_person("one")
    interrupted.turn(first, "begun")
    note = Note(code="interrupted", subject=first.id, text="the person wrote again")
    last = interrupted.said_by_person("two")
    interrupted.turn(last, "begun", notes=(note,), ended=(first.id,))
    assert of(interrupted, 2).verdict == "stopped"


def test_a_deadline_is_over_when_it_came() -> None:
    """S-13: the wait for more messages, which went on once and then ended."""
    log = Log()
    spoke = log.said_by_person("one")
    log.turn(spoke, "queued", effects=(schedule("_coalesce", 1),))
    for generation, outcome in ((1, "queued"), (2, "begun")):
        due = log.due("_coalesce", generation, kind="deadline")
        effects = (schedule("_coalesce", 2),) if generation == 1 else ()
        log.turn(due, outcome, effects=effects)
        answer = of(log, due.seq)
        assert (answer.verdict, answer.summary) == (
            "done", "The wait was over, and what waited for that went on.",
        )  # fmt: skip
        assert "The wait for more messages was over." in texts(answer)


def test_an_exchange_with_tool_calls_is_told_in_order() -> None:
    """D-3: what was asked for, who took it up, what came of it, and the answer."""
    log = Log()
    spoke, saving, looking = remembering(log)
    claimed = log.claim(saving, "memory_save")
    first = log.result(saving, "Remembered (id 1).")
    log.turn(spoke, "continued", state=State(turns=2, position=first.seq), ended=(first.id,),
             rows=(result_row(),))  # fmt: skip
    second = log.result(looking, "Nothing was found.", is_error=True, is_tainted=True)
    last = log.turn(
        spoke, "answered", state=State(turns=3, position=second.seq), rows=(result_row(),),
        effects=(send(E, spoke.id, "Noted."),), ended=(second.id, spoke.id),
    )  # fmt: skip
    log.said(E, last, "Noted.")
    answer = of(log, spoke.seq)
    assert answer.verdict == "said"
    assert [step.what for step in answer.steps] == [
        "message.in", "turn.continued", "tool.asked", "tool.asked", "note.recalled",
        "call.claimed", "tool.result", "turn.continued", "tool.result", "turn.answered",
        "send.decided", "send.said",
    ]  # fmt: skip
    told = texts(answer)
    assert 'It asked for memory_save: “{"content":"Ann\'s code is 4711"}”' in told
    assert "The call of memory_save was taken on." in told
    assert "memory_save answered: “Remembered (id 1).”" in told
    assert "memory_recall failed: “Nothing was found.”; it holds untrusted content" in told
    assert "Memory gave the model 2 memories (a, b)." in told
    assert "looks again" not in told
    assert of(log, claimed).steps == answer.steps, "whatever of it is asked about"
    for result in (first, second):
        of_result = of(log, result.seq)
        assert of_result.verdict == "done"
        assert of_result.summary.startswith("It was the answer of a tool")
    assert of(log, last).steps[0].what == "message.in"


def test_a_tool_that_never_answered_is_told() -> None:
    log = Log()
    spoke, *_ = remembering(log)
    due = log.due("_call", 1, kind="deadline")
    note = Note(code="no_result", text="memory_save gave no answer within 30 s")
    log.turn(
        spoke, "answered", state=State(turns=2, position=due.seq), notes=(note,),
        rows=(result_row(is_error=True),), effects=(send(E, spoke.id),), ended=(due.id, spoke.id),
    )  # fmt: skip
    told = texts(of(log, spoke.seq))
    assert "The wait for tools was over." in told
    assert "It went on without a tool: memory_save gave no answer within 30 s." in told
    assert of(log, due.seq).summary == "The wait was over, and what waited for that went on."


def test_a_signal_is_about_its_follow_up() -> None:
    """C-4: one turn may give several of a kind; the count tells which."""
    log = Log()
    spoke = log.said_by_person()
    effects = (schedule("tea", 1), schedule("cake", 1))
    follow_up = FollowUp(generation=1, fire_at=at(60), reason="look")
    state = State(turns=1, follow_ups={"tea": follow_up, "cake": follow_up})
    log.turn(spoke, "answered", state=state, effects=effects, ended=(spoke.id,))
    spoke = log.said_by_person("no")
    notes = tuple(
        Note(code="void", text="the person spoke first", subject=name)
        for name in ("tea", "x1", "cake")
    )
    log.turn(
        spoke, "answered", notes=notes, effects=(cancel("tea", 1), cancel("cake", 1)),
        ended=("x1", spoke.id),  # an event from outside that was thought about is no follow-up
    )  # fmt: skip
    for seq, kind, count, timer_id in (
        (2, "timer.scheduled", 1, "tea"), (2, "timer.scheduled", 2, "cake"),
        (4, "timer.voided", 1, "tea"), (4, "timer.voided", 2, "cake"),
    ):  # fmt: skip
        fact = log.fact(seq)
        assert fact is not None
        answer = log.why(stories.of_signal(KEY, fact, kind, count))
        assert (answer.id, answer.verdict) == (timer_id, "void")
        turn = log.why(stories.of_signal(KEY, fact, kind, 3))
        assert turn.kind == "turn"


# ---------------------------------------------------------------- limits


def test_an_endless_chain_is_cut_and_says_so() -> None:
    """An agent that plans its next follow-up in each one."""
    log = Log()
    planned(log)
    for generation in range(1, 80):
        due = log.due("tea", generation)
        log.turn(
            due, "answered", state=open_state(generation + 1, "tea", generation + 1),
            effects=(schedule("tea", generation + 1),), ended=(due.id,),
        )  # fmt: skip
    answer = of(log, due.seq)
    assert answer.cut is not None
    assert len(answer.steps) < 100


def test_a_long_story_keeps_its_beginning_and_its_end() -> None:
    log = Log()
    spoke = log.said_by_person()
    for number in range(300):
        note = Note(code="truncated", text=f"number {number}")
        log.turn(spoke, "continued", notes=(note,))
    answer = of(log, spoke.seq)
    assert len(answer.steps) == answers.STEPS_MAX
    assert answer.cut == "401 steps in the middle are left out"
    assert answer.steps[0].text == "You wrote: “hi”"
    assert "number 299" in answer.steps[-1].text


def test_long_texts_are_cut_and_lines_joined() -> None:
    """X-6: a model's text is quoted, not pasted."""
    log = Log()
    answer = of(log, log.said_by_person("a\n" * 5000).seq)
    assert len(answer.steps[0].text) < 400
    assert "\n" not in answer.steps[0].text
    assert answer.steps[0].text.endswith("…”")
