"""A story in steps: one for each thing that happened, by the templates of its sentences. Pure.

Whoever asks about themselves is "you"; an admin reads the person's name. What was said is
quoted and cut; nothing is invented, and what isn't in the log isn't told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, assert_never

import msgspec

from vigil.contracts import (
    QUESTION,
    Attempt,
    CallClaim,
    Control,
    DeadLetterEnd,
    Dispatch,
    External,
    Note,
    Receipt,
    Said,
    Tick,
    TimerFired,
    ToldEvent,
    ToolResultEvent,
    UserMessage,
)
from vigil.contracts.notes import note_words
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.contracts.vocabulary import JOBS
from vigil.words.amounts import about

from .deeds import CalledOff, Deed, HomeNotified, Put, Reported, Requested, Started, Working
from .entries import AGENT, KeptFact
from .facts import Fact, LetterFact, MissingRecord, TurnFact
from .story import Story
from .text import DEADLINES, EXACT_S, LATE_S, RETRY, STARTED, TEMPLATES, Voice, clip

P = TypeVar("P")


class WhyStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened. `seq` is its place in the stream."""

    at: datetime | None
    seq: int
    stream: str
    what: str
    """A stable name: message.in, timer.due, turn.answered, note.void, send.said, ..."""
    text: str
    id: str | None = None


def steps_of(story: Story, voice: Voice) -> list[WhyStep]:
    """Return the steps of a story, oldest first."""
    scene = _scene(story, voice)
    return [step for fact in _plain(story.facts) for step in _steps(fact, scene)]


class _Scene(msgspec.Struct, frozen=True):
    """What a story is about, so that what its turns did besides can be left out."""

    voice: Voice
    about: frozenset[str]
    """Names of its follow-ups, and ids of its events."""
    events: frozenset[str]
    """The ids alone: nobody knows an event by that, so it is "it"."""
    decided: frozenset[str]
    """Messages whose turn is part of the story, so that they are quoted there already."""
    tools: dict[str, str]
    """Its tool calls by the ids of their effects."""
    aside: int | None = None
    """The turn that ended it by the way: what else that said is another story."""

    def relevant(self, parts: Sequence[P], name: Callable[[P], str | None]) -> list[P]:
        """Return the parts of a turn that the story is about; all, if it's about none."""
        chosen = [part for part in parts if name(part) in self.about]
        return chosen or list(parts)


def _scene(story: Story, voice: Voice) -> _Scene:
    bodies = [fact.body for fact in story.facts]
    timers = {b.payload.timer_id for b in bodies if isinstance(b, TimerFired)}
    events = {b.id for b in bodies if isinstance(b, UserMessage | External | TimerFired)}
    turns = [b for b in bodies if isinstance(b, TurnFact)]
    started = [d for turn in turns for d in turn.deeds if isinstance(d, Started)]
    return _Scene(
        voice=voice,
        about=frozenset(timers | events | ({story.timer_id} if story.timer_id else set())),
        events=frozenset(events),
        decided=frozenset(send.id for turn in turns for send in turn.sends),
        tools={asked.id: asked.tool for turn in turns for asked in turn.asked}
        | {deed.id: f"The {deed.kind}" for deed in started},
        aside=_aside(story),
    )


def _aside(story: Story) -> int | None:
    """Return the turn that ended what a story is about, if it was itself about something else."""
    focus = story.focus
    if focus is None or not isinstance(focus.body, TurnFact):
        return None
    turn = focus.body
    if story.timer_id is None:
        is_about = turn.event is not None and turn.event.id == story.id
        return focus.seq if not is_about and _ends(turn, story.id) else None
    is_other = turn.event is not None and turn.event.type in ("user_message", "control")
    is_planned = any(plan.timer_id == story.timer_id for plan in turn.plans)
    return focus.seq if is_other and not is_planned else None


def _ends(turn: TurnFact, event_id: str) -> bool:
    """Tell whether a turn ended the exchange of an event without an answer."""
    return any(n.code in ("interrupted", "void") and n.subject == event_id for n in turn.notes)


def _plain(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Leave out the beginning of a try whose end is told, too."""
    tries = [(fact, fact.body) for fact in facts if isinstance(fact.body, Attempt)]
    ended = {_try_of(body) for _, body in tries if body.state != "begun"}
    idle = {fact.seq for fact, body in tries if body.state == "begun" and _try_of(body) in ended}
    yield from (f for f in facts if not (isinstance(f.body, Attempt) and f.seq in idle))


def _try_of(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.effect_id, attempt.channel, attempt.number


# ---------------------------------------------------------------- records


class _Pen:
    """Writes the steps of one record."""

    def __init__(self, fact: Fact, scene: _Scene, at: datetime | None) -> None:
        self._fact = fact
        self._voice = scene.voice
        self._at = at

    def step(
        self,
        name: str,
        record: msgspec.Struct | None = None,
        id_: str | None = None,
        *,
        template: str | None = None,
        **values: Any,
    ) -> WhyStep:
        """Write a step by the template of that name, or another, with the fields of a record.

        What comes after a colon in the name tells apart several ways to say the same.
        """
        fields = {} if record is None else msgspec.structs.asdict(record)
        return WhyStep(
            at=self._at,
            seq=self._fact.seq,
            stream=self._fact.stream,
            what=name.partition(":")[0],
            text=self._voice.fill(template or TEMPLATES[name], fields | values),
            id=id_,
        )


def _steps(fact: Fact, scene: _Scene) -> Iterator[WhyStep]:
    body = fact.body
    match body:
        case TurnFact():
            yield from _turn(_Pen(fact, scene, body.at), fact, body, scene)
        case LetterFact():
            yield _Pen(fact, scene, body.at).step("dead_letter", body, body.id)
        case DeadLetterEnd():
            pen = _Pen(fact, scene, body.at)
            yield pen.step(f"dead_letter.{body.action}", body, body.letter_id)
        case KeptFact():
            who = body.by if body.by == AGENT else scene.voice.name(body.by)
            pen = _Pen(fact, scene, body.at)
            yield pen.step(body.name, None, body.id, who=who, **body.fields)
        case MissingRecord():
            yield _Pen(fact, scene, None).step("gone", body)
        case CallClaim():
            yield _Pen(fact, scene, body.at).step("call.claimed", body, body.effect_id)
        case Said() | Receipt() | Dispatch() | Attempt():
            yield _delivery(_Pen(fact, scene, body.at), body, scene)
        case _:
            yield _event(_Pen(fact, scene, body.created_at), body, scene)


def _delivery(pen: _Pen, record: Said | Receipt | Dispatch | Attempt, scene: _Scene) -> WhyStep:
    match record:
        case Said():
            text = "" if record.id in scene.decided else record.text
            return pen.step("send.said", record, record.id, text=text)
        case Receipt():
            why = scene.voice.address(clip(record.reason))
            return pen.step(f"receipt.{record.outcome}", record, record.effect_id, reason=why)
        case Dispatch():
            return pen.step("channel.ordered", record, record.effect_id)
        case Attempt():
            # A reason names the status itself, or the status is it.
            why = clip(record.reason) or (f"HTTP {record.status}" if record.status else "")
            return pen.step(f"channel.{record.state}", record, record.effect_id, reason=why)
        case _:
            assert_never(record)


# ---------------------------------------------------------------- events


_PLAIN: Final[dict[type, str]] = {
    External: "event.external",
    ToldEvent: "told",
}


def _event(
    pen: _Pen,
    event: UserMessage | TimerFired | External | Control | ToolResultEvent | ToldEvent | Tick,
    scene: _Scene,
) -> WhyStep:
    match event:
        case UserMessage(payload=payload):
            files = "; ".join(one.in_words for one in payload.attachments)
            who = scene.voice.speaker(payload.by)
            return pen.step("message.in", payload, event.id, who=who, files=files)
        case External() | ToldEvent():
            return pen.step(_PLAIN[type(event)], event.payload, event.id)
        case TimerFired():
            return _due(pen, event)
        case Control():
            return _control(pen, event, scene.voice)
        case ToolResultEvent():
            tool = scene.tools.get(event.payload.call_id) or "A tool"
            return pen.step("tool.result", event.payload, event.id, tool=tool)
        case Tick():
            return pen.step("tick", None, event.id)
        case _:
            assert_never(event)


def _due(pen: _Pen, event: TimerFired) -> WhyStep:
    payload = event.payload
    late_s = (event.created_at - payload.fire_at).total_seconds()
    late = "" if late_s <= LATE_S else about(late_s) if late_s >= EXACT_S else f"{late_s:.1f} s"
    if payload.kind == "deadline":
        wait = DEADLINES.get(payload.timer_id.partition("-")[0], RETRY)
        return pen.step("timer.due:deadline", payload, event.id, wait=wait, late=late)
    if event.created_at < payload.fire_at:
        return pen.step("timer.due:early", payload, event.id)
    return pen.step("timer.due", payload, event.id, late=late)


def _control(pen: _Pen, event: Control, voice: Voice) -> WhyStep:
    payload, name = event.payload, f"control.{event.payload.op}"
    if payload.start is not None:
        started = "child" if payload.start.parent else "job"
        variant = "task" if payload.start.task_id else started
        if (slot := payload.start.slot) is not None:
            variant = "again" if slot.tries else "slot"
            return pen.step(f"{name}:{variant}", payload.start, event.id, row=slot.name)
        return pen.step(f"{name}:{variant}", payload.start, event.id)
    if payload.status is not None:
        return pen.step(f"{name}:{payload.status.state}", payload.status, event.id)
    if payload.decision is not None:
        decision = payload.decision
        given = decision.input
        said = decision.text if given is None else msgspec.json.encode(given).decode()
        who = voice.name(decision.by)
        return pen.step(f"{name}:{decision.verdict}", decision, event.id, who=who, said=said)
    return pen.step(name, payload, event.id, reason=voice.address(clip(payload.reason)))


# ---------------------------------------------------------------- turns


def _turn(pen: _Pen, fact: Fact, turn: TurnFact, scene: _Scene) -> Iterator[WhyStep]:
    is_aside = fact.seq == scene.aside
    yield pen.step(f"turn.{turn.outcome}{':aside' if is_aside else ''}", turn, turn.id)
    for call in turn.calls:
        if call.refusal is not None:
            yield pen.step("tool.refused", call)
    if not is_aside:
        yield from _begun(pen, turn, scene)
    notes = [note for note in turn.notes if not _is_said_anyway(note, turn)]
    for note in scene.relevant(notes, lambda note: note.subject):
        yield _note(pen, note, scene)
    yield from _planned(pen, turn, scene)
    for send in turn.sends if not is_aside else ():
        payload = send.payload
        how = ("voidable" if payload.is_voidable else "ordered") if payload.is_autonomous else ""
        name = f"send.decided:{how or 'answer'}"
        channel = "" if payload.channel == "socket" else payload.channel
        yield pen.step(name, payload, send.id, channel=channel)
    if turn.retry_at is not None and not is_aside:
        yield pen.step("model.retry", turn)
    if turn.more:
        yield pen.step("more", turn)


def _note(pen: _Pen, note: Note, scene: _Scene) -> WhyStep:
    """Tell a note; what it is about is named only by a name that tells something."""
    is_named = note.subject is not None and note.subject not in scene.events
    return pen.step(
        f"note.{note.code}",
        None,
        note.subject,
        template=note_words(note.code).sentence,
        text=scene.voice.address(note.text.rstrip(".")),
        about=f"“{clip(note.subject or '', 80)}”" if is_named else "It",
    )


def _planned(pen: _Pen, turn: TurnFact, scene: _Scene) -> Iterator[WhyStep]:
    plans = scene.relevant(turn.plans, lambda plan: plan.timer_id)
    for plan in plans:
        known: dict[str, Any] = {"keep": False, "reason": "", "message": None, "is_tainted": False}
        if plan.follow_up is not None:
            known |= msgspec.structs.asdict(plan.follow_up)
        fields = known | msgspec.structs.asdict(plan)
        yield pen.step("timer.planned", None, plan.timer_id, **fields)
    if others := len(turn.plans) - len(plans):
        yield pen.step("timer.planned:others", others=others, several=others > 1)


def _begun(pen: _Pen, turn: TurnFact, scene: _Scene) -> Iterator[WhyStep]:
    """Tell what a turn set in motion, but for messages and timers; verdicts come first."""
    verdicts = [d for d in turn.deeds if isinstance(d, Requested) and d.state != "open"]
    for verdict in verdicts:
        yield _deed(pen, verdict, scene.voice)
    for asked in turn.asked:
        yield pen.step("tool.asked" if asked.tool else "memory.given", asked, asked.id)
    for deed in turn.deeds:
        if deed not in verdicts:
            yield _deed(pen, deed, scene.voice)


def _is_said_anyway(note: Note, turn: TurnFact) -> bool:
    """Tell whether a note says less than what is told of a request or a job anyway."""
    if note.code in ("planned", "job_done"):
        return any(isinstance(deed, Working) for deed in turn.deeds)
    requests = {deed.id for deed in turn.deeds if isinstance(deed, Requested)}
    return note.subject in requests and note.code.startswith("approval_")


def _deed(pen: _Pen, deed: Deed, voice: Voice) -> WhyStep:
    match deed:
        case Started():
            return pen.step(
                f"{deed.kind}.started", deed, deed.id, template=STARTED, begun=_begun_by(deed.kind)
            )
        case CalledOff() | HomeNotified() | Put():
            return pen.step(_name_of(deed), deed, deed.id)
        case Reported():
            return pen.step(f"{deed.to}.{deed.state}", deed, deed.id)
        case Requested():
            is_question = deed.tool == QUESTION and deed.state == "open"
            variant = ":question" if is_question else ""
            return pen.step(f"approval.{deed.state}{variant}", deed, deed.id)
        case Working():
            return pen.step(
                f"job.{deed.status}", None, deed.id, template="{job}", job=_job(deed, voice)
            )
        case _:
            assert_never(deed)


def _name_of(deed: CalledOff | HomeNotified | Put) -> str:
    if isinstance(deed, Put):
        if deed.kind == "preference":
            return "preference.noted"
        if deed.kind == "task":
            return "task.made" if deed.is_new else "task.changed"
        return "goal.split" if deed.is_split else f"goal.{'set' if deed.is_new else 'pursued'}"
    return "call.cancelled" if isinstance(deed, CalledOff) else "told_home"


def _begun_by(kind: str) -> str:
    """Say that a session was started; of a kind that isn't known any more just that."""
    known = SESSION_KINDS.get(kind)
    return known.started if known is not None and known.started else f"It started a {kind}"


def _job(job: Working, voice: Voice) -> str:
    fields = msgspec.structs.asdict(job) | {"words": JOBS[job.status].step}
    if job.status == "running" and not job.steps:
        return voice.fill(TEMPLATES["job:begun"], fields)
    names = ["job:planned"] if job.is_planned else []
    lines = [voice.fill(TEMPLATES[name], fields | {"several": job.steps != 1}) for name in names]
    for ran in job.ran:
        name = "job:step" if ran.is_over else "job:step_begun"
        lines.append(voice.fill(TEMPLATES[name], msgspec.structs.asdict(ran)))
    if job.status != "running":
        name = "job:succeeded" if job.status == "succeeded" else "job:ended"
        lines.append(voice.fill(TEMPLATES[name], fields | {"several": job.run != 1}))
    return " ".join(lines)
