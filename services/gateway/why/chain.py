"""From one record to the first cause, and on to what came of it. Pure: it asks, and is answered.

Every record points to what came before it: a claim names its turn, a turn its event, a timer's
event the generation (the ordinal) of the turn that planned it. So the way back costs a few
reads, however long the session is; :mod:`.reader` answers what is asked here.

A chain has no end by itself: an agent may plan its next follow-up in each one. So it goes back
`HOPS_MAX` timers, and says if it was cut there.

What others did about a turn (claims and results, verdicts of the person, turns of another session)
is found by the ids that the turn gave. A session that was started is told in outline, by the turns
that somebody else learns of; asked about by itself, it is told whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from vigil.contracts import (
    BoardChange,
    Cause,
    ChildStatus,
    Control,
    ControlPayload,
    Decision,
    Receipt,
    Said,
    SendPayload,
    SpawnSession,
    Start,
    TellParent,
    TimerFired,
    ToolResultEvent,
    Turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from .deeds import Requested, Started, is_about
from .facts import Fact, MissingRecord, TurnFact
from .story import (
    HOPS_MAX,
    All,
    Asking,
    At,
    FirstTurn,
    FoundFacts,
    In,
    LettersAbout,
    Newest,
    Next,
    ResultOf,
    SendStory,
    StoryRecords,
    Turns,
    TurnWith,
    turns_about,
    within,
)

RUN_MAX: Final = 5
"""Messages that are told because they filled the cap."""
SENDS_MAX: Final = 8
"""Messages of one exchange whose delivery is told."""
ROUNDS_MAX: Final = 3
"""How often what came of something is looked at for what came of that."""
DEPTH_MAX: Final = 4
"""Generations of sessions that are told below the one that is asked about."""
SESSIONS_MAX: Final = 12
REQUESTS_MAX: Final = 8
_ENDS: Final = ("failed", "cancelled", "stopped")


# ---------------------------------------------------------------- back to the first cause


def back(collected: StoryRecords, key: SessionKey, event: Fact) -> Asking[None]:
    """Tell how an event came about, back to the first cause."""
    for _ in range(HOPS_MAX):
        collected.add(event)
        before = yield from _before(collected, key, event)
        if before is None:
            return
        event = before
    collected.is_cut = True


def _before(collected: StoryRecords, key: SessionKey, event: Fact) -> Asking[Fact | None]:
    """Tell what brought an event about and return the event before it, if that is known."""
    match event.body:
        case TimerFired(payload=fired):
            generation = fired.generation
            planned = yield FirstTurn(0, event.seq, lambda turn: turn.ordinal >= generation)
            return (yield from back_to_plan(collected, planned, generation))
        case ToolResultEvent(payload=result):
            return (yield from _asked(collected, result.call_id, event.seq))
        case Control(payload=ControlPayload(decision=Decision() as decision)):
            return (yield from _asked(collected, decision.approval_id, event.seq))
        case Control(payload=ControlPayload(status=ChildStatus() as status)):
            return (yield from _asked(collected, status.call_id, event.seq))
        case Control(payload=ControlPayload(start=Start() as start)):
            yield from _climb(collected, key, start)
    return None


def _asked(collected: StoryRecords, id_: str, before: int) -> Asking[Fact | None]:
    """Tell the turn that asked for something and return the event that it was about."""
    turn: Fact | None = yield TurnWith(id_, before)
    if turn is None or not isinstance(turn.body, TurnFact):
        return None
    collected.add(turn)
    return (yield from cause_of(collected, turn, turn.body))


def _climb(collected: StoryRecords, key: SessionKey, start: Start) -> Asking[None]:
    """Tell how the session came about that started this one: back through all of them."""
    parent = _parent_of(key, start)
    if parent is None:
        return
    collected.place(key, parent, start.parent_turn)
    turn: Fact | None = yield In(parent, At(start.parent_turn))
    if turn is not None and isinstance(turn.body, TurnFact):
        yield from within(parent, _up(collected, parent, turn, turn.body))


def _up(collected: StoryRecords, key: SessionKey, turn: Fact, body: TurnFact) -> Asking[None]:
    collected.add(turn)
    event = yield from cause_of(collected, turn, body)
    if event is not None:
        yield from back(collected, key, event)


def _parent_of(key: SessionKey, start: Start) -> SessionKey | None:
    """Return who started a session; a session of somebody else can't have."""
    try:
        parent = SessionKey.parse(start.parent)
    except InvalidInput:
        return None
    return parent if (parent.user, parent.agent) == (key.user, key.agent) else None


def back_to_plan(
    collected: StoryRecords, planned: Fact | None, generation: int
) -> Asking[Fact | None]:
    """Tell the turn that planned a timer and return the event that it was about."""
    if planned is None or not isinstance(planned.body, TurnFact):
        return None
    if planned.body.ordinal != generation:
        return None  # deleted since
    collected.add(planned)
    cause: Fact | None = yield from cause_of(collected, planned, planned.body)
    return cause


def cause_of(collected: StoryRecords, turn: Fact, body: TurnFact) -> Asking[Fact | None]:
    """Tell the event of a turn and the turns between, and return the event."""
    if body.event is None:
        return None
    event: Fact | None = yield At(body.event.seq)
    if event is None:
        event = Fact(
            seq=body.event.seq,
            stream=turn.stream,
            subject=turn.subject,
            body=MissingRecord(what="the event behind it, which is no longer in the log"),
        )
    collected.add(event)
    if event.seq + 1 < turn.seq:
        found = yield turns_about(event.seq, body.event.id, before=turn.seq)
        collected.take(found)
    return event


# ---------------------------------------------------------------- on to what came of it


def _trail(collected: StoryRecords, key: SessionKey, effect_id: str) -> Asking[tuple[Fact, ...]]:
    """Return what delivery wrote about a send, and the dead letters about it."""
    subjects = (
        key.out_said(effect_id),
        key.receipt(effect_id),
        key.send(effect_id),
        key.attempt(effect_id),
    )
    found: FoundFacts = yield All(subjects)
    letters: FoundFacts = yield LettersAbout(effect_id=effect_id)
    return collected.take(found) + collected.take(letters)


def sent(
    collected: StoryRecords, key: SessionKey, effect_id: str, payload: SendPayload | None
) -> Asking[SendStory]:
    trail = yield from _trail(collected, key, effect_id)
    story = SendStory(id=effect_id, payload=payload, trail=trail)
    last = story.last
    if payload is not None and isinstance(last, Receipt) and last.outcome == "void":
        spoke: Fact | None = yield Next(key.in_user, payload.fence)
        collected.add(spoke)
    return story


def all_sent(
    collected: StoryRecords, key: SessionKey, turns: Iterable[Fact], causes: Collection[str] = ()
) -> Asking[tuple[SendStory, ...]]:
    """Tell what became of what the turns say; with `causes`, because of those events."""
    sends = [
        send
        for fact in turns
        if isinstance(fact.body, TurnFact)
        for send in fact.body.sends
        if not causes or send.payload.caused_by in causes
    ]
    collected.is_cut = collected.is_cut or len(sends) > SENDS_MAX
    stories: list[SendStory] = []
    for send in sends[-SENDS_MAX:]:
        story = yield from sent(collected, key, send.id, send.payload)
        stories.append(story)
    return tuple(stories)


def exchange(
    collected: StoryRecords, key: SessionKey, event: Fact, event_id: str
) -> Asking[tuple[Fact | None, tuple[SendStory, ...]]]:
    """Tell the turns about an event and what they said -> (the last of them, the sends)."""
    found: FoundFacts = yield turns_about(event.seq, event_id)
    turns = collected.take(found)
    letters: FoundFacts = yield LettersAbout(seq=event.seq)
    collected.take(letters)
    yield from run_before(collected, key, turns)
    sends = yield from all_sent(collected, key, turns, {event_id, *_joined_to(turns, event_id)})
    return (turns[-1] if turns else None), sends


def _joined_to(turns: Iterable[Fact], event_id: str) -> Iterable[str]:
    """Return the event that an event was answered together with, if it was."""
    for fact in turns:
        if isinstance(fact.body, TurnFact) and fact.body.event is not None:
            notes = fact.body.notes
            if any(note.code == "joined" and note.subject == event_id for note in notes):
                yield fact.body.event.id


def run_before(collected: StoryRecords, key: SessionKey, turns: Iterable[Fact]) -> Asking[None]:
    """Tell the autonomous messages for which the gates refused one, newest first."""
    bodies = [fact.body for fact in turns if isinstance(fact.body, TurnFact)]
    refusals = {note.code: body.last_send for body in bodies for note in body.notes}
    limit = RUN_MAX if "blocked_cap" in refusals else 1
    effect_id = refusals.get("blocked_cap") or refusals.get("blocked_cooldown")
    while limit and effect_id is not None:
        said: Fact | None = yield Newest(key.out_said(effect_id))
        if said is None or not isinstance(said.body, Said) or not said.body.is_autonomous:
            return
        collected.add(said)
        turn: Fact | None = yield At(said.body.turn_seq)
        sends = turn.body.sends if turn is not None and isinstance(turn.body, TurnFact) else ()
        effect_id = next((s.payload.previous for s in sends if s.id == effect_id), None)
        limit -= 1


# ---------------------------------------------------------------- on to what others did about it


def followed(collected: StoryRecords, key: SessionKey, depth: int = 0) -> Asking[None]:
    """Tell what came of what the turns so far set in motion."""
    done: set[str] = set()
    for _ in range(ROUNDS_MAX):
        new = [one for one in _turns(collected, key) if one[1].id not in done]
        if not new:
            return
        done |= {turn.id for _, turn in new}
        for fact, turn in new:
            if depth == 0:
                yield from _called(collected, key, turn)
            yield from _requested(collected, fact, turn)
            yield from _started(collected, key, fact, turn, depth)


def _turns(collected: StoryRecords, key: SessionKey) -> Iterator[tuple[Fact, TurnFact]]:
    for fact in collected.of(key):
        if isinstance(fact.body, TurnFact):
            yield fact, fact.body


# ---------------------------------------------------------------- calls


def _called(collected: StoryRecords, key: SessionKey, turn: TurnFact) -> Asking[None]:
    """Tell who took up the tool calls of a turn, and the result that it has."""
    if turn.asked:
        claims: FoundFacts = yield All(tuple(key.call(asked.id) for asked in turn.asked))
        collected.take(claims)
    if turn.folded:
        result: Fact | None = yield At(turn.folded)
        collected.add(result)


def _result(collected: StoryRecords, call_id: str, after: int) -> Asking[None]:
    """Tell what came back by itself, and what was done about that."""
    if any(_answers(fact, call_id) for fact in collected.facts()):
        return
    result: Fact | None = yield ResultOf(call_id, after)
    collected.add(result)
    if result is not None and isinstance(result.body, ToolResultEvent):
        turns: FoundFacts = yield turns_about(result.seq, result.body.id)
        collected.take(turns)


def _answers(fact: Fact, call_id: str) -> bool:
    return isinstance(fact.body, ToolResultEvent) and fact.body.payload.call_id == call_id


# ---------------------------------------------------------------- requests to a person


def _requested(collected: StoryRecords, fact: Fact, turn: TurnFact) -> Asking[None]:
    """Tell what became of the requests of a turn: by whom, or by what."""
    asked = [d for d in turn.deeds if isinstance(d, Requested) and d.state == "open"]
    for request in asked[:REQUESTS_MAX]:
        id_ = request.id
        found: FoundFacts = yield Turns(
            fact.seq,
            None,
            lambda one, id_=id_: is_about(one, id_),  # type: ignore[misc]
            lambda one, id_=id_: is_about(one, id_),  # type: ignore[misc]
        )
        for ended in collected.take(found):
            yield from _decided(collected, ended)
    collected.is_cut = collected.is_cut or len(asked) > REQUESTS_MAX


def _decided(collected: StoryRecords, ended: Fact) -> Asking[None]:
    """Tell the event that ended a request, and what came of a call that was accepted."""
    if not isinstance(ended.body, TurnFact):
        return
    event: Cause | None = ended.body.event
    if event is not None:
        decided: Fact | None = yield At(event.seq)
        collected.add(decided)
    for asked in ended.body.asked:
        if asked.is_accepted:
            yield from _result(collected, asked.id, ended.seq)


# ---------------------------------------------------------------- sessions that were started


def _started(
    collected: StoryRecords, key: SessionKey, fact: Fact, turn: TurnFact, depth: int
) -> Asking[None]:
    """Tell in outline what the sessions did that a turn started."""
    for deed in turn.deeds:
        if not isinstance(deed, Started):
            continue
        if collected.place(deed.child, key, fact.seq):
            if depth >= DEPTH_MAX or collected.sessions > SESSIONS_MAX:
                collected.is_cut = True
                return
            yield from within(deed.child, _outline(collected, deed.child, depth + 1))
        yield from _result(collected, deed.id, fact.seq)


def _outline(collected: StoryRecords, key: SessionKey, depth: int) -> Asking[None]:
    begun: Fact | None = yield Next(key.in_event("control"), 0)
    collected.add(begun)
    turns: FoundFacts = yield Turns(0, None, _reaches_others, _is_over)
    collected.take(turns)
    yield from followed(collected, key, depth)


def _reaches_others(turn: Turn) -> bool:
    """Tell whether somebody else learns of a turn."""
    kinds = (TellParent, BoardChange, SpawnSession)
    return turn.outcome in _ENDS or any(isinstance(effect, kinds) for effect in turn.effects)


def _is_over(turn: Turn) -> bool:
    ends = [e.payload.state for e in turn.effects if isinstance(e, TellParent)]
    return "done" in ends or "failed" in ends
