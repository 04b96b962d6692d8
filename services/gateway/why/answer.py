"""A story as the API answers it: its steps, and the verdict in a word and in a sentence. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vigil.contracts import (
    SOCKET,
    Attempt,
    Control,
    DeadLetterEnd,
    Dispatch,
    External,
    Note,
    Receipt,
    Said,
    TimerFired,
    ToolResultEvent,
)
from vigil.contracts.notes import note_words
from vigil.contracts.vocabulary import APPROVALS, ENDINGS, JOBS, OUTCOMES, Ending
from vigil.words.amounts import count_of, number_of

from .deeds import Reported, Requested, Working
from .entries import KeptFact
from .facts import LetterFact, MissingRecord, TurnFact
from .steps import WhyStep, steps_of
from .story import SendStory, Story
from .text import Voice, clip

STEPS_MAX: Final = 200
FIRST_STEPS: Final = 40
"""Of a story that is too long the beginning is kept, and the end, which matters more."""
End = tuple[Ending, str]

_WHERE: Final = {
    "parent": "was reported to the session that started it",
    "task": "stands in its task",
    "slot": "was told to whom its row of the timetable names",
}
_OVER: Final[End] = ("done", "The wait was over, and what waited for that went on.")
_GONE: Final[End] = ("unknown", "The log doesn't hold what decided it any more.")
_ASIDE: Final = ("answered", "continued", "begun", "queued")
"""Outcomes that say what became of their event: what notes tell is something else."""
_SPOKEN: Final = ("said", "sent", "delivered")
_SO_FAR: Final = "[{is_said:if}It is in the transcript, and |It isn't said yet: ]"
_TEMPLATES: Final = {
    "undelivered": "It is in the transcript, and will go to {channel:q}.",
    "ordered": _SO_FAR + "it waits for the channel {channel:q}"
    "[ again, because {requeued_by} ordered it].",
    "begun": _SO_FAR + "attempt {number} at the channel {channel:q} is not over.",
    "unknown": _SO_FAR + "nobody knows whether the channel {channel:q} took it.",
    "tried": _SO_FAR + "the channel {channel:q} has not taken it yet[: {reason:300}]"
    "[; it is tried again at {next_at:at}].",
    "said": "It was said{because}.",
    "took": "It was said, and {took_by} took it{because}.",
    "void": "It was not said: {they} wrote before it was.",
    "unsaid": "It was not said[: {reason:300}].",
    "dropped": "It is in the transcript, but was not sent to {took_by}[: {reason:300}].",
    "ambiguous": "It is in the transcript, but whether {took_by} took it is not known"
    "[: {reason:300}]; it isn't sent again by itself.",
    "failed": "It is in the transcript, but {took_by} did not take it[: {reason:300}]."
    "[ It is the dead letter {letter}.]",
    "planned": "It is planned for {fire_at:at}.",
    "held": "It was held back, and is planned for {fire_at:at}.",
    "replaced": "It was replaced by a later plan of the same name, for {fire_at:at}.",
    "letter": "The {service} could not use it: {cause}.[ {who} {action} it.]",
}
"""Sentences of what vocabulary has no words for: sends in the making, plans, dead letters."""


class WhyAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was said, or was not. `summary` is the verdict in one sentence."""

    id: str
    kind: str
    """message, event, timer, turn, dead_letter, signal, approval, job, task, grant or memory."""
    session_key: str
    """Empty: it is in none."""
    verdict: str
    summary: str
    steps: tuple[WhyStep, ...]
    trace_id: str | None = None
    """The trace (W3C) under which the last step that has one was written."""
    cut: str | None = None
    """What is left out, if anything is."""
    others: tuple[str, ...] = ()
    """Other sessions, the newest first, that have something of that name: name one of them to be
    told of that. This is the newest."""


def answer_of(story: Story, voice: Voice, *, id_: str, kind: str, session_key: str) -> WhyAnswer:
    """Tell a story, cut to `STEPS_MAX` steps."""
    steps = steps_of(story, voice)
    cuts = ["the log was too long to read whole"] if story.is_cut else []
    if (more := len(steps) - STEPS_MAX) > 0:
        verb = number_of(more, "is", "are")
        left_out = f"{count_of(more, 'step')} in the middle {verb} left out"
        cuts.append(left_out)
        steps = [*steps[:FIRST_STEPS], *steps[FIRST_STEPS - STEPS_MAX :]]
    verdict, summary = _end(story, voice)
    parents = [f.traceparent for f in story.facts if f.traceparent is not None]
    return WhyAnswer(
        id=id_,
        kind=kind,
        session_key=session_key,
        verdict=verdict,
        summary=voice.address(summary),
        steps=tuple(steps),
        trace_id=parents[-1].split("-")[1] if parents and parents[-1].count("-") == 3 else None,
        cut="; ".join(cuts) or None,
    )


def _end(story: Story, voice: Voice) -> End:
    """Return the word and the sentence that end a story."""
    if story.focus is not None and isinstance(entry := story.focus.body, KeptFact):
        return entry.ending, voice.fill(entry.summary, entry.fields)
    if story.kind == "approval":
        return _request(story, voice)
    if story.sends:
        return _sends(story, voice)
    if story.kind == "dead_letter":
        return _letter(story, voice)
    if story.timer_id is not None:
        return _timer(story, story.timer_id, voice)
    return _turn(story, voice)


# ---------------------------------------------------------------- messages


def _sends(story: Story, voice: Voice) -> End:
    """Tell the end of what was to be said; of several the first that went wrong counts."""
    ends = [_send(send, story, voice) for send in story.sends]
    if len(ends) == 1:
        return ends[0]
    wrong = [end for end in ends if end[0] not in _SPOKEN]
    word, text = wrong[0] if wrong else ends[-1]
    many = f"one of {len(ends)} messages" if wrong else f"{len(ends)} messages in all"
    return word, f"{text} That is {many}."


def _send(send: SendStory, story: Story, voice: Voice) -> End:
    last = send.last
    if last is None:
        return "pending", "It is decided, and delivery has not said it yet."
    word, name = _sent(last, is_said=send.said is not None)
    letters = [f.body.id for f in send.trail if isinstance(f.body, LetterFact)]
    values: dict[str, Any] = msgspec.structs.asdict(last) | {
        "is_said": send.said is not None,
        "because": _because(send, story, voice),
        "took_by": _channel(send),
        "letter": letters[-1] if letters else "",
    }
    return word, voice.fill(_TEMPLATES[name], values)


def _sent(last: Said | Receipt | Dispatch | Attempt, *, is_said: bool) -> tuple[Ending, str]:
    """Return the word, and the name of the template, of what counts now of a send."""
    match last:
        case Said():
            return ("said", "said") if last.channel == SOCKET else ("pending", "undelivered")
        case Dispatch():
            return "pending", "ordered"
        case Attempt():
            return _tried(last)
        case Receipt(outcome="void" | "said" as outcome):
            return outcome, outcome
        case Receipt(outcome=outcome):
            named = "took" if outcome in _SPOKEN else outcome
            return outcome, named if is_said or named == "took" else "unsaid"


def _tried(attempt: Attempt) -> tuple[Ending, str]:
    if attempt.state == "begun":
        return "pending", "begun"
    is_over = attempt.state == "unknown" and attempt.next_at is None
    return ("ambiguous", "unknown") if is_over else ("retrying", "tried")


def _channel(send: SendStory) -> str:
    named = [f.body.channel for f in send.trail if isinstance(f.body, Dispatch | Attempt)]
    if not named and send.said is not None and send.said.channel != SOCKET:
        named = [send.said.channel]
    return f"the channel “{clip(named[-1])}”" if named else "the channel"


def _because(send: SendStory, story: Story, voice: Voice) -> str:
    """Tell why it was said: what began it, and that the gates agreed."""
    payload = send.payload
    about = payload or send.said
    if about is None or not about.is_autonomous:
        return f", as the answer to what {voice.they} wrote" if payload is not None else ""
    if payload is not None and not payload.is_voidable:
        is_result = _has_result(story, payload.caused_by)
        how = "this is what came of it" if is_result else "it came due"
        return f": {voice.they} had asked for it, and {how}"
    if any(fired.payload.kind == "follow_up" for fired in _fired(story)):
        return ": it came due as planned, and nothing held it back"
    return ": the agent decided to by itself, and nothing held it back"


# ---------------------------------------------------------------- follow-ups and turns


def _timer(story: Story, timer_id: str, voice: Voice) -> End:
    if story.focus is None or not isinstance(story.focus.body, TurnFact):
        return _GONE
    turn = story.focus.body
    note = next((n for n in reversed(turn.notes) if n.subject == timer_id), None)
    if note is not None and note.code != "held":
        return _noted(note, voice)
    plans = [plan for plan in turn.plans if plan.timer_id == timer_id]
    if not plans:
        return _turn(story, voice)
    word: Ending = "pending"
    if note is not None:
        word = "held"
    elif any(closed == timer_id for closed, _ in turn.cancels):
        word = "replaced"
    template = _TEMPLATES["planned" if word == "pending" else word]
    return word, voice.fill(template, msgspec.structs.asdict(plans[-1]))


def _turn(story: Story, voice: Voice) -> End:
    focus = story.focus
    if focus is None:
        return _GONE
    if isinstance(focus.body, MissingRecord):
        return "unknown", f"All that is left of it is {focus.body.what}."
    if not isinstance(focus.body, TurnFact):
        return "pending", "It is stored, and no turn has taken it up yet."
    return _ended(story, focus.body, voice)


def _ended(story: Story, turn: TurnFact, voice: Voice) -> End:
    is_other = turn.event is not None and turn.event.id != story.id
    is_elsewhere = is_other and story.id in turn.ended
    if is_elsewhere and _has_result(story, story.id):
        return "done", "It was the answer of a tool, and the agent went on with it."
    if is_elsewhere and _is_deadline(story, story.id):
        return _OVER
    if (end := _reported(turn, voice)) is not None:
        return end
    collected = [note for note in turn.notes if note_words(note.code).ending is not None]
    if collected and (is_elsewhere or turn.outcome not in _ASIDE):
        return _last(story, collected[-1], voice)
    is_wait = turn.event is not None and _is_deadline(story, turn.event.id)
    if is_wait and turn.outcome in ("begun", "queued"):
        return _OVER
    words = OUTCOMES[turn.outcome]
    return words.ending, words.summary


def _reported(turn: TurnFact, voice: Voice) -> End | None:
    """Tell what a turn told to who started its session, how its job ended, or what it awaits."""
    for deed in reversed(turn.deeds):
        if isinstance(deed, Working) and JOBS[deed.status].signal:
            job = JOBS[deed.status]
            why = f": {deed.text}" if deed.text and job.ending != "done" else ""
            return job.ending, f"The job {job.step}{why}."
        if isinstance(deed, Reported) and deed.state == "done":
            return "done", f"It is done, and its result {_WHERE[deed.to]}."
        if isinstance(deed, Reported) and deed.state == "failed":
            return "failed", f"It failed: {deed.text}"
        if isinstance(deed, Requested) and deed.state == "open" and turn.outcome == "continued":
            return _asked(deed, voice.start, voice)
    return None


def _last(story: Story, note: Note, voice: Voice) -> End:
    """Tell the note that ended a story; what came from outside is no plan, and isn't forgotten."""
    outside = [f.body.id for f in story.facts if isinstance(f.body, External)]
    if note.code == "void" and note.subject in outside:
        text = f"Nothing was said about it: {voice.they} wrote first, and the answer knows of it."
        return "void", text
    return _noted(note, voice)


def _noted(note: Note, voice: Voice) -> End:
    words, why = note_words(note.code), note.text.rstrip(".")
    if words.ending is None:
        return "unknown", f"{why[:1].upper()}{why[1:]}."
    if note.code == "void" and why == "the person spoke first":
        why = f"{voice.they} wrote first, and that ends what the agent had planned by itself"
    last = words.last or f"{ENDINGS[words.ending].start}: {{text}}."
    return words.ending, voice.fill(last, {"text": why})


def _fired(story: Story) -> list[TimerFired]:
    return [fact.body for fact in story.facts if isinstance(fact.body, TimerFired)]


def _is_deadline(story: Story, event_id: str) -> bool:
    """Tell whether an event is a deadline, which has no end but that it came."""
    return any(f.payload.kind == "deadline" and f.id == event_id for f in _fired(story))


def _has_result(story: Story, id_: str) -> bool:
    """Tell whether the event of that id is a result of a call or a session."""
    return any(isinstance(f.body, ToolResultEvent) and f.body.id == id_ for f in story.facts)


# ---------------------------------------------------------------- requests, dead letters


def _request(story: Story, voice: Voice) -> End:
    deeds = story.focus.body.deeds if story.focus and isinstance(story.focus.body, TurnFact) else ()
    found = [deed for deed in deeds if isinstance(deed, Requested) and deed.id == story.id]
    if not found:
        return _GONE
    orders = (fact.body.payload for fact in story.facts if isinstance(fact.body, Control))
    decisions = [order.decision for order in orders if order.decision is not None]
    by = [decision.by for decision in decisions if decision.approval_id == story.id]
    return _asked(found[-1], voice.name(by[-1]) if by else voice.start, voice)


def _asked(request: Requested, who: str, voice: Voice) -> End:
    words = APPROVALS[request.state]
    values = msgspec.structs.asdict(request) | {"Who": who}
    return words.ending, voice.fill(words.summary, values)


def _letter(story: Story, voice: Voice) -> End:
    letter = next((f.body for f in story.facts if isinstance(f.body, LetterFact)), None)
    if letter is None:
        return _GONE
    ends = [f.body for f in story.facts if isinstance(f.body, DeadLetterEnd)]
    since = {"who": voice.name(ends[-1].by), "action": ends[-1].action} if ends else {"who": ""}
    values = msgspec.structs.asdict(letter) | {"action": ""} | since
    return "failed", voice.fill(_TEMPLATES["letter"], values)
