"""What `why` says of one record, and how it ends: as tables (SPEC D-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from services.gateway.why.answer import WhyAnswer
from tests.support.why import (
    KEY,
    E,
    Log,
    at,
    autonomous,
    of,
    open_state,
    planned,
    remembering,
    schedule,
    send,
    texts,
    webhook,
    whats,
)
from vigil.contracts import (
    Approval,
    BoardChange,
    BoardChangePayload,
    Cause,
    ChildStatus,
    Decision,
    Effect,
    Job,
    Note,
    Row,
    SaveMemory,
    SaveMemoryPayload,
    Start,
    TellParent,
    TellParentPayload,
    ToolResultBlock,
    ToolUseBlock,
)
from vigil.contracts.notes import NOTES

# ---------------------------------------------------------------- notes


def noted(code: str) -> WhyAnswer:
    log = Log()
    event = log.external(source="bus:ci", content="x")
    note = Note(code=code, text="it rained", subject="tea")
    log.turn(event, "ignored", notes=(note,), ended=(event.id,))
    return of(log, event.seq)


@pytest.mark.parametrize("code", NOTES)
def test_every_note_has_a_sentence(code: str) -> None:
    """D-3"""
    sentence = noted(code).steps[-1].text
    assert sentence.endswith("."), code
    assert "it rained" in sentence, code
    assert "{" not in sentence, code


def test_a_note_of_a_later_version_tells_itself() -> None:
    """S-14: an older gateway reads a newer log."""
    assert noted("of_tomorrow").steps[-1].text == "it rained."


# ---------------------------------------------------------------- one record, one end


class Tale(NamedTuple):
    """What is written to a log, and what is told of the record whose sequence that returns."""

    write: Callable[[Log], int]
    verdict: str
    summary: str
    told: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


def _answered(log: Log) -> int:
    spoke = log.said_by_person("what is\nnew?")
    turn = log.turn(spoke, "answered", effects=(send(E, spoke.id),), ended=(spoke.id,))
    return log.said(E, turn)


def _reminded(log: Log) -> int:
    planned(log, keep=True, message="Tea!")
    due = log.due("tea", 1)
    effect = autonomous(E, due.id, is_voidable=False)
    turn = log.turn(due, "answered", effects=(effect,), ended=(due.id,))
    return log.said(E, turn, is_autonomous=True)


def _void(log: Log) -> int:
    """S-6: its receipt names no turn; the message that came first is told."""
    planned(log)
    due = log.due("tea", 1)
    log.turn(due, "answered", effects=(autonomous(E, due.id, fence=1),), ended=(due.id,))
    log.said_by_person("I'm back")
    return log.receipt(E, "void", "the person spoke first (sequence 5)")


def _erased(log: Log) -> int:
    """X-8: what was erased leaves a gap, not an error."""
    log.said_by_person()
    log.store("session.vigil.ann.t1.turn", b"")
    return log.said(E, 2, "still here")


def _ambiguous(log: Log) -> int:
    """D-2: and nobody sends it again by itself."""
    said = webhook(log)
    log.attempt(E, 1, "begun")
    log.attempt(E, 1, "unknown", reason="no answer within 10 s")
    log.receipt(E, "ambiguous", "no answer within 10 s")
    return said


def _overtaken(log: Log) -> int:
    """S-6: it was no plan of the agent's, and the answer to the person knows of it."""
    event = log.external(source="bus:ci", content="x")
    log.turn(event, "begun")
    spoke = log.said_by_person("hi")
    note = Note(code="void", text="the person spoke first", subject=event.id)
    log.turn(spoke, "answered", notes=(note,), effects=(send(E, spoke.id),),
             ended=(event.id, spoke.id))  # fmt: skip
    return event.seq


def _held(log: Log) -> int:
    """D-3: nobody knows an event by a uuid; the follow-up that asks about it has a name."""
    event = log.external(source="bus:ci", content="x")
    note = Note(code="held", text="a pause: put off to noon", subject=event.id)
    log.turn(
        event, "held", state=open_state(1, "_outside", 1), notes=(note,),
        effects=(schedule("_outside", 1),), ended=(event.id,),
    )  # fmt: skip
    return event.seq


def _paused(log: Log) -> int:
    due = log.due("_pause", 1, kind="deadline")
    log.turn(due, "saved", notes=(Note(code="saved", text="1 memory handed on"),), ended=(due.id,))
    return due.seq


def _late(log: Log) -> int:
    late = log.result("9" * 32, "Remembered.")
    note = Note(code="late_result", text="no call is open", subject="9" * 32)
    log.turn(late, "ignored", notes=(note,))
    return late.seq


def _remembered(log: Log) -> int:
    spoke = log.said_by_person("bye")
    payload = SaveMemoryPayload(content="Ann likes tea", type="fact", source="chat:t1")
    log.turn(spoke, "silent", effects=(SaveMemory(id="6" * 32, ordinal=1, payload=payload),),
             ended=(spoke.id,))  # fmt: skip
    return spoke.seq


def _refused(log: Log) -> int:
    """S-11: why nothing was planned."""
    called = ToolUseBlock(id="c1", name="schedule_followup", input={})
    told = ToolResultBlock(tool_use_id="c1", content="Autonomy is switched off.", is_error=True)
    rows = (
        Row(role="assistant", source="agent", at=at(2), blocks=(called,)),
        Row(role="user", source="tool", at=at(2), blocks=(told,)),
    )
    return log.turn(log.said_by_person("check on me"), "continued", rows=rows)


def _unreadable(log: Log) -> int:
    """X-6: with what the cortex made of it."""
    seq = log.store(KEY.in_user, b"not json")
    cause = Cause(id=f"seq-{seq}", seq=seq, type="user_message")
    note = Note(code="dead_letter", text="not JSON", subject=cause.id)
    log.turn(cause, "failed", notes=(note,), ended=(cause.id,))
    return seq


TALES: Final = {
    "stored": Tale(
        lambda log: log.said_by_person().seq,
        "pending", "It is stored, and no turn has taken it up yet.", ("You wrote: “hi”",),
    ),
    "answered": Tale(
        _answered, "said", "It was said, as the answer to what you wrote.",
        ("You wrote: “what is new?”", "The agent decided (turn 1).",
         "It decided to answer: “hello”", "It was said in the transcript."),
    ),
    "reminded": Tale(
        _reminded, "said", "It was said: you had asked for it, and it came due.",
        ("a reminder that you asked for, “tea”", "it will say “Tea!”",
         "It decided to say, as you had asked: “tea?”"),
    ),
    "void": Tale(
        _void, "void", "It was not said: you wrote before it was.",
        ("“I'm back”", "It was not said: you spoke first (sequence 5)."),
    ),
    "erased": Tale(
        _erased, "said", "It was said.", ("It was said in the transcript: “still here”",)
    ),
    "ambiguous": Tale(
        _ambiguous, "ambiguous",
        "It is in the transcript, but whether the channel “ops” took it is not known: no answer "
        "within 10 s; it isn't sent again by itself.",
        ("Whether attempt 1 arrived is not known: no answer within 10 s.",),
        ("Attempt 1 began.",),
    ),
    "overtaken": Tale(
        _overtaken, "void",
        "Nothing was said about it: you wrote first, and the answer knows of it.",
        ("The agent took note (turn 2).",), ("It decided to answer",),
    ),
    "held": Tale(
        _held, "held", "It was held back: a pause: put off to noon.",
        ("It was held back by a pause: put off to noon.",), ("x1",),
    ),
    "paused": Tale(
        _paused, "done", "The conversation had paused, and what matters was handed to memory.",
        ("It was time to look whether the conversation had paused.",), ("asked again",),
    ),
    "waiting": Tale(
        lambda log: remembering(log)[0].seq, "pending", "It isn't over yet: the agent goes on."
    ),
    "late": Tale(
        _late, "ignored", "Nothing was done about it: no call is open.",
        ("A tool answered: “Remembered.”",),
    ),
    "remembered": Tale(
        _remembered, "silent", "Nothing was said: there was nothing to say.",
        ("It gave memory something to save: “Ann likes tea”",),
    ),
    "refused": Tale(
        _refused, "pending", "It isn't over yet: the agent goes on.",
        ("It called schedule_followup: “Autonomy is switched off.”",),
    ),
    "unreadable": Tale(
        _unreadable, "failed", "It was not said: not JSON.",
        ("Here was a record that can't be read",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TALES)
def test_a_tale(name: str) -> None:
    """D-3: what happened, and the end, for a program and for a person."""
    log, tale = Log(), TALES[name]
    answer = of(log, tale.write(log))
    assert (answer.verdict, answer.summary) == (tale.verdict, tale.summary)
    assert [text for text in tale.told if text not in texts(answer)] == []
    assert [text for text in tale.untold if text in texts(answer)] == []


def test_a_step_says_where_and_when() -> None:
    log = Log()
    answer = of(log, _answered(log))
    assert answer.kind == "message"
    assert whats(answer) == ["message.in", "turn.answered", "send.decided", "send.said"]
    assert answer.steps[0].at == at(1)
    assert [step.seq for step in answer.steps] == [1, 2, 2, 3]


# ---------------------------------------------------------------- one step, one sentence


def approval(state: Any, tool: str = "shell", **options: Any) -> BoardChange:
    request = Approval(
        id="a" * 32, session_key=str(KEY), tool=tool, input={"c": 1}, digest="0" * 64,
        risk="external", reason="no order", asked_at=at(0), expires_at=at(60), caused_by="e1",
        generation=1, state=state, **options,
    )  # fmt: skip
    return BoardChange(id="b", ordinal=1, payload=BoardChangePayload(entity=request))


def report(state: Any, **options: Any) -> TellParent:
    payload = TellParentPayload(
        parent="ann:vigil:t0", call_id="c", state=state, content="so", **options
    )
    return TellParent(id="p", ordinal=1, payload=payload)


def job(status: Any, **options: Any) -> BoardChange:
    entity = Job(
        id="d" * 32, session_key=str(KEY), goal="dig", status=status, created_at=at(0), **options
    )
    return BoardChange(id="b", ordinal=1, payload=BoardChangePayload(entity=entity))


SENTENCES: Final[list[tuple[Effect, str]]] = [
    (report("running"), "It reported its progress: “so”"),
    (report("asking"), "It reported that it waits for a person: “so”"),
    (
        report("done", is_tainted=True),
        "It reported its result to the session that started it: “so”; it holds untrusted content",
    ),
    (report("failed"), "It reported that it failed: “so”"),
    (
        approval("open"),
        'It asks you for approval to run shell (external: no order): “{"c":1}”, '
        "until 2031-03-03 09:01:00 UTC.",
    ),
    (approval("open", "ask_user"), 'It asks you: “{"c":1}”, until 2031-03-03 09:01:00 UTC.'),
    (approval("accepted"), "You had accepted shell, so it may run."),
    (
        approval("edited", edited={"c": 2}),
        'You had accepted shell with other arguments, so it may run with those: “{"c":2}”',
    ),
    (approval("answered", text="no need"), "You had answered in place of shell: “no need”"),
    (approval("rejected"), "You had rejected shell, so it doesn't run."),
    (approval("expired"), "Nobody decided on shell in time, so it doesn't run."),
    (approval("superseded"), "You wrote what made shell needless, so it doesn't run."),
    (approval("closed"), "What asked for shell was ended, so it doesn't run."),
    (job("queued"), "The job “dig” waits to be run."),
    (job("running"), "The job “dig” began, and is planned."),
    (job("succeeded"), "The job “dig” is done: 0 steps."),
    (job("failed", error="no plan"), "The job “dig” failed: no plan."),
    (job("cancelled"), "The job “dig” was cancelled."),
]


@pytest.mark.parametrize(("effect", "sentence"), SENTENCES)
def test_what_a_turn_set_in_motion(effect: Effect, sentence: str) -> None:
    log = Log()
    turn = log.turn(log.said_by_person(), "continued", effects=(effect,))
    assert sentence in [step.text for step in of(log, turn).steps]


def decision(verdict: Any, by: str, text: str = "") -> Decision:
    return Decision(approval_id="a", verdict=verdict, digest="0", by=by, text=text)


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ({"op": "stop", "reason": "enough"}, "You asked to stop the running turn (enough)."),
        ({"op": "clear_follow_ups"}, "All follow-ups but reminders were cleared."),
        ({"op": "cancel", "reason": "too slow"}, "The session was cancelled (too slow)."),
        ({"op": "start"}, "The session was started."),
        ({"op": "start", "start": Start(prompt="dig")}, "The job was submitted: “dig”"),
        (
            {"op": "status", "status": ChildStatus(call_id="c", state="asking", text="may I")},
            "A session that it started waits for a person: “may I”",
        ),
        ({"op": "status"}, "A session that it started reported progress."),
        ({"op": "approval"}, "You decided on a request."),
        (
            {"op": "approval", "decision": decision("reject", "ann", text="no")},
            "You rejected the request: “no”",
        ),
        (
            {"op": "approval", "decision": decision("accept", "root")},
            "root accepted the request.",
        ),
    ],
)
def test_an_order(order: dict[str, Any], sentence: str) -> None:
    log = Log()
    assert sentence in texts(of(log, log.control(**order).seq))
