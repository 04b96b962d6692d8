"""A story in sentences: one step for each thing that happened. Pure.

Whoever asks about themselves is "you"; an admin reads the person's name. What was said is
quoted and cut; nothing is invented, and what isn't in the log isn't told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar, assert_never

import msgspec

from vigil.contracts import (
    Attempt,
    CallClaim,
    DeadLetterEnd,
    Dispatch,
    External,
    Note,
    Receipt,
    Said,
    TimerFired,
    ToolResultEvent,
    UserMessage,
)
from vigil.contracts.vocabulary import OUTCOMES, RECEIPTS

from .cutting import clip
from .deed_words import deed_words, is_verdict
from .deeds import Requested, Started, Working
from .event_words import event_words
from .facts import Asked, Fact, Gone, LetterFact, Plan, Send, TurnFact
from .notes import told
from .telling import Story
from .voice import Voice, instant, quote

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
    sends = {send.id for b in bodies if isinstance(b, TurnFact) for send in b.sends}
    asks = [asked for b in bodies if isinstance(b, TurnFact) for asked in b.asked]
    return _Scene(
        voice=voice,
        about=frozenset(timers | events | ({story.timer_id} if story.timer_id else set())),
        events=frozenset(events),
        decided=frozenset(sends),
        tools={asked.id: asked.tool for asked in asks} | _sessions_of(bodies),
        aside=_aside(story),
    )


def _sessions_of(bodies: Iterable[object]) -> dict[str, str]:
    """Name the sessions that were started, by the effects that did."""
    deeds = (deed for body in bodies if isinstance(body, TurnFact) for deed in body.deeds)
    return {deed.id: f"The {deed.kind}" for deed in deeds if isinstance(deed, Started)}


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
    listed = list(facts)
    ended = {_try_of(f.body) for f in listed if isinstance(f.body, Attempt) and not _is_begun(f)}
    for fact in listed:
        if _is_begun(fact) and isinstance(fact.body, Attempt) and _try_of(fact.body) in ended:
            continue
        yield fact


def _is_begun(fact: Fact) -> bool:
    return isinstance(fact.body, Attempt) and fact.body.state == "begun"


def _try_of(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.effect_id, attempt.channel, attempt.number


def _steps(fact: Fact, scene: _Scene) -> Iterator[WhyStep]:
    match fact.body:
        case TurnFact():
            yield from _turn(fact, fact.body, scene)
        case LetterFact() as letter:
            text = f"It was put with the dead letters as {letter.id}: {letter.cause}."
            yield _step(fact, letter.at, "dead_letter", text, letter.id)
        case DeadLetterEnd() as end:
            text = f"{end.by} {end.action} the dead letter {end.letter_id}."
            yield _step(fact, end.at, f"dead_letter.{end.action}", text, end.letter_id)
        case Gone() as gone:
            yield _step(fact, None, "gone", f"Here was {gone.what}.")
        case CallClaim() as claim:
            text = f"The call of {claim.tool} was taken up."
            yield _step(fact, claim.at, "call.claimed", text, claim.effect_id)
        case ToolResultEvent() as event:
            yield _step(fact, event.created_at, "tool.result", _result(event, scene), event.id)
        case Said() | Receipt() | Dispatch() | Attempt() as record:
            yield _delivery(fact, record, scene)
        case _:
            what, text = event_words(fact.body, scene.voice)
            yield _step(fact, fact.body.created_at, what, text, fact.body.id)


def _step(fact: Fact, at: datetime | None, what: str, text: str, id_: str | None = None) -> WhyStep:
    return WhyStep(at=at, seq=fact.seq, stream=fact.stream, what=what, text=text, id=id_)


# ---------------------------------------------------------------- tools


def _result(event: ToolResultEvent, scene: _Scene) -> str:
    tool = scene.tools.get(event.payload.call_id) or "A tool"
    verb = "failed" if event.payload.is_error else "answered"
    taint = "; it holds untrusted content" if event.payload.is_tainted else ""
    return f"{tool} {verb}: {quote(event.payload.content)}{taint}"


# ---------------------------------------------------------------- turns


def _turn(fact: Fact, turn: TurnFact, scene: _Scene) -> Iterator[WhyStep]:
    def step(what: str, text: str, id_: str | None = None) -> WhyStep:
        return _step(fact, turn.at, what, text, id_)

    voice = scene.voice
    begin = OUTCOMES[turn.outcome].step
    if fact.seq == scene.aside:
        begin = "The agent took note"
    model = f", model {turn.model}" if turn.model else ""
    yield step(f"turn.{turn.outcome}", f"{begin} (turn {turn.ordinal}{model}).", turn.id)
    yield from _begun(fact, turn, scene)
    notes = [note for note in turn.notes if not _is_told(note, turn)]
    for note in scene.relevant(notes, lambda note: note.subject):
        sentence = told(note, is_named=note.subject not in scene.events)
        yield step(f"note.{note.code}", voice.tell(sentence), note.subject)
    plans = scene.relevant(turn.plans, lambda plan: plan.timer_id)
    for plan in plans:
        yield step("timer.planned", _planned(plan, voice), plan.timer_id)
    if others := len(turn.plans) - len(plans):
        more = "follow-up" if others == 1 else "follow-ups"
        yield step("timer.planned", f"It planned {others} other {more}, too.")
    for send in turn.sends if fact.seq != scene.aside else ():
        yield step("send.decided", _decided(send, voice), send.id)
    if turn.retry_at is not None and fact.seq != scene.aside:
        yield step("model.retry", f"It looks again at {instant(turn.retry_at)}.")
    if turn.more:
        yield step("more", f"{turn.more} more things of this turn are left out.")


def _begun(fact: Fact, turn: TurnFact, scene: _Scene) -> Iterator[WhyStep]:
    """Tell what a turn set in motion, but for messages and timers."""
    for call in turn.calls:
        if call.refusal is not None:
            text = f"It called {call.name}: {quote(call.refusal)}"
            yield _step(fact, turn.at, "tool.refused", text)
    if fact.seq == scene.aside:
        return
    verdicts = [deed for deed in turn.deeds if is_verdict(deed)]
    for deed in verdicts:
        yield _step(fact, turn.at, *deed_words(deed, scene.voice), deed.id)
    for asked in turn.asked:
        what = "tool.asked" if asked.tool else "memory.given"
        yield _step(fact, turn.at, what, _asked(asked), asked.id)
    for deed in turn.deeds:
        if deed not in verdicts:
            yield _step(fact, turn.at, *deed_words(deed, scene.voice), deed.id)


def _is_told(note: Note, turn: TurnFact) -> bool:
    """Tell whether a note says less than what is told of a request or a job anyway."""
    if note.code in ("planned", "job_done"):
        return any(isinstance(deed, Working) for deed in turn.deeds)
    requests = {deed.id for deed in turn.deeds if isinstance(deed, Requested)}
    return note.subject in requests and note.code.startswith("approval_")


def _asked(asked: Asked) -> str:
    if asked.is_accepted:
        return f"It asked for {asked.tool}, which was accepted: {quote(asked.text)}"
    if asked.tool:
        return f"It asked for {asked.tool}: {quote(asked.text)}"
    return f"It gave memory something to save: {quote(asked.text)}"


def _planned(plan: Plan, voice: Voice) -> str:
    follow_up = plan.follow_up
    is_kept = follow_up is not None and follow_up.keep
    kind = f"a reminder that {voice.they} asked for" if is_kept else "a follow-up"
    text = f"It planned {kind}, {quote(plan.timer_id)}, for {instant(plan.fire_at)}"
    if follow_up is not None and follow_up.reason:
        text += f"; the reason: {quote(follow_up.reason)}"
    if follow_up is not None and follow_up.message is not None:
        text += f"; it will say {quote(follow_up.message)}"
    if follow_up is not None and follow_up.is_tainted:
        text += "; it descends from untrusted content"
    return f"{text}."


def _decided(send: Send, voice: Voice) -> str:
    payload = send.payload
    if not payload.is_autonomous:
        how = "It decided to answer"
    elif payload.is_voidable:
        how = "The gates let it through, and it decided to say"
    else:
        how = f"It decided to say, as {voice.they} had asked"
    channel = "" if payload.channel == "socket" else f" over the channel {quote(payload.channel)}"
    taint = "; it descends from untrusted content" if payload.is_tainted else ""
    return f"{how}{channel}: {quote(payload.text)}{taint}"


# ---------------------------------------------------------------- delivery


def _delivery(fact: Fact, record: Said | Receipt | Dispatch | Attempt, scene: _Scene) -> WhyStep:
    match record:
        case Said():
            return _step(fact, record.at, "send.said", _said(record, scene), record.id)
        case Receipt():
            why = f": {clip(record.reason)}" if record.reason else ""
            text = scene.voice.tell(f"{RECEIPTS[record.outcome].step}{why}.")
            return _step(fact, record.at, f"receipt.{record.outcome}", text, record.effect_id)
        case Dispatch():
            by = f"{record.requeued_by} handed it" if record.requeued_by else "It was handed"
            again = " once more" if record.requeued_by else ""
            text = f"{by} to the channel {quote(record.channel)}{again}."
            return _step(fact, record.at, "channel.ordered", text, record.effect_id)
        case Attempt():
            return _step(
                fact, record.at, f"channel.{record.state}", _attempt(record), record.effect_id
            )
        case _:
            assert_never(record)


def _said(said: Said, scene: _Scene) -> str:
    tag = f", tagged {quote(said.tag)}" if said.tag else ""
    text = "" if said.id in scene.decided else f": {quote(said.text)}"
    return f"It was said in the transcript{tag}{text or '.'}"


def _attempt(attempt: Attempt) -> str:
    """Return the sentence of a try; a reason names the status itself, or the status is it."""
    reason = clip(attempt.reason) or (f"HTTP {attempt.status}" if attempt.status else "")
    why = f": {reason}" if reason else ""
    if attempt.state == "begun":
        return f"Attempt {attempt.number} began."
    if attempt.state == "refused":
        text = f"Attempt {attempt.number} was refused{why}."
    else:
        text = f"Whether attempt {attempt.number} arrived is not known{why}."
    if attempt.next_at is not None:
        text += f" The next is at {instant(attempt.next_at)}."
    return text
