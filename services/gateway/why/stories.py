"""The stories there are: of a message, an event, a turn, a timer, a dead letter, a signal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from vigil.contracts import Attempt, CallClaim, Dispatch, Receipt, Said, TimerFired
from vigil.contracts.vocabulary import OUTCOMES
from vigil.subjects import SessionKey

from . import chain
from .deeds import Requested
from .entries import KeptFact
from .facts import Fact, TurnFact, is_open
from .story import (
    HOPS_MAX,
    Asking,
    At,
    FirstTurn,
    FoundFacts,
    LettersAbout,
    Newest,
    Next,
    SendStory,
    Story,
    StoryRecords,
    TurnWith,
)


def of_send(key: SessionKey, effect_id: str, turn: Fact | None) -> Asking[Story]:
    """Tell why a message was said, or was not. `turn`: the one that decided it, if it's there."""
    collected = StoryRecords()
    payload = None
    if turn is not None and isinstance(turn.body, TurnFact):
        payload = next((s.payload for s in turn.body.sends if s.id == effect_id), None)
        collected.add(turn)
        event = yield from chain.cause_of(collected, turn, turn.body)
        if event is not None:
            yield from chain.back(collected, key, event)
    sent = yield from chain.sent(collected, key, effect_id, payload)
    yield from chain.followed(collected, key)
    return Story(
        id=effect_id,
        kind="message",
        facts=collected.facts(),
        focus=turn,
        sends=(sent,),
        is_cut=collected.is_cut,
    )


def of_event(key: SessionKey, event: Fact, event_id: str) -> Asking[Story]:
    """Tell how an event came about and what was done about it."""
    collected = StoryRecords()
    yield from chain.back(collected, key, event)
    last, sends = yield from chain.exchange(collected, key, event, event_id)
    yield from chain.followed(collected, key)
    return Story(
        id=event_id,
        kind="event",
        facts=collected.facts(),
        focus=last or event,
        sends=sends,
        is_cut=collected.is_cut,
    )


def of_turn(key: SessionKey, turn: Fact, body: TurnFact) -> Asking[Story]:
    """Tell how a turn came about and what it did."""
    collected = StoryRecords()
    collected.add(turn)
    event = yield from chain.cause_of(collected, turn, body)
    if event is not None:
        yield from chain.back(collected, key, event)
    yield from chain.run_before(collected, key, [turn])
    sends = yield from chain.all_sent(collected, key, [turn])
    yield from chain.followed(collected, key)
    return Story(
        id=body.id,
        kind="turn",
        facts=collected.facts(),
        focus=turn,
        sends=sends,
        is_cut=collected.is_cut,
    )


def of_timer(key: SessionKey, timer_id: str, generation: int) -> Asking[Story]:
    """Tell who planned a follow-up and what became of it."""
    collected = StoryRecords()
    focus: Fact | None = None
    sends: tuple[SendStory, ...] = ()
    planned: Fact | None = yield FirstTurn(0, None, lambda turn: turn.ordinal >= generation)
    before = yield from chain.back_to_plan(collected, planned, generation)
    if not collected.facts():
        planned = None  # deleted since
    if before is not None:
        yield from chain.back(collected, key, before)
    for _ in range(HOPS_MAX):
        if planned is None:
            break
        closed: Fact | None = yield FirstTurn(
            planned.seq,
            None,
            lambda turn, g=generation: not is_open(turn, timer_id, g),  # type: ignore[misc]
        )
        if closed is None or not isinstance(closed.body, TurnFact):
            focus = planned
            break
        collected.add(closed)
        focus, sends = yield from _closing(collected, key, closed, closed.body, timer_id)
        planned, generation = focus, _put_off_to(focus, timer_id)
        if not generation:
            break
    else:
        collected.is_cut = True
    yield from chain.followed(collected, key)
    return Story(
        id=timer_id,
        kind="timer",
        facts=collected.facts(),
        focus=focus,
        sends=sends,
        timer_id=timer_id,
        is_cut=collected.is_cut,
    )


def _closing(
    collected: StoryRecords, key: SessionKey, closed: Fact, body: TurnFact, timer_id: str
) -> Asking[tuple[Fact | None, tuple[SendStory, ...]]]:
    """Tell what ended a follow-up: it came due, or something else came first."""
    if body.event is None:
        return closed, ()
    event: Fact | None = yield At(body.event.seq)
    collected.add(event)
    if (
        event is not None
        and isinstance(event.body, TimerFired)
        and event.body.payload.timer_id == timer_id
    ):
        last, sends = yield from chain.exchange(collected, key, event, event.body.id)
        return last or closed, sends
    return closed, ()


def _put_off_to(focus: Fact | None, timer_id: str) -> int:
    """Return the generation that a held follow-up has from that turn on; 0: it wasn't held."""
    if focus is None or not isinstance(focus.body, TurnFact):
        return 0
    is_held = any(n.code == "held" and n.subject == timer_id for n in focus.body.notes)
    return focus.body.ordinal if is_held else 0


def of_letter(key: SessionKey, letter: Fact, effect_id: str | None, seq: int) -> Asking[Story]:
    """Tell what died and what became of it."""
    collected = StoryRecords()
    collected.add(letter)
    letter_id = getattr(letter.body, "id", "")
    sends: tuple[SendStory, ...] = ()
    focus: Fact | None = None
    source: Fact | None = (yield At(seq)) if seq else None
    if effect_id is not None:
        decided = yield from deciding(key, effect_id)
        sent = yield from of_send(key, effect_id, decided)
        collected.add(*sent.facts)
        sends, focus = sent.sends, sent.focus
    elif source is not None and isinstance(source.body, TurnFact):
        told = yield from of_turn(key, source, source.body)
        collected.add(*told.facts)
        sends, focus = told.sends, told.focus
    elif source is not None:
        event_id = getattr(source.body, "id", None) or f"seq-{source.seq}"
        told = yield from of_event(key, source, event_id)
        collected.add(*told.facts)
        sends, focus = told.sends, told.focus
    else:
        ends: FoundFacts = yield LettersAbout(letter_id=letter_id)
        collected.take(ends)
    return Story(
        id=letter_id,
        kind="dead_letter",
        facts=collected.facts(),
        focus=focus,
        sends=sends,
        is_cut=collected.is_cut,
    )


def of_record(key: SessionKey, fact: Fact) -> Asking[Story]:
    """Tell the story of whatever is at a place in the log."""
    match fact.body:
        case TurnFact():
            return (yield from _of_turn(key, fact, fact.body))
        case Said():
            turn: Fact | None = yield At(fact.body.turn_seq)
            return (yield from of_send(key, fact.body.id, turn))
        case CallClaim():
            asking: Fact | None = yield TurnWith(fact.body.effect_id, fact.seq)
            if asking is not None and isinstance(asking.body, TurnFact):
                return (yield from _of_turn(key, asking, asking.body))
            return Story(id=fact.body.effect_id, kind="turn", facts=(fact,))
        case Receipt() | Dispatch() | Attempt():
            decided = yield from deciding(key, fact.body.effect_id)
            return (yield from of_send(key, fact.body.effect_id, decided))
        case _:
            id_ = getattr(fact.body, "id", None) or f"seq-{fact.seq}"
            is_past = isinstance(fact.body, KeptFact)
            told = of_entries(id_, "message", [fact], None) if is_past else of_event(key, fact, id_)
            return (yield from told)


def _of_turn(key: SessionKey, turn: Fact, body: TurnFact) -> Asking[Story]:
    """Tell the story of a turn; of one that left its work open, that of its event, to the end."""
    if OUTCOMES[body.outcome].is_open and not body.sends and body.event is not None:
        event: Fact | None = yield At(body.event.seq)
        if event is not None:
            story = yield from of_event(key, event, body.event.id)
            return msgspec.structs.replace(story, kind="turn")
    return (yield from of_turn(key, turn, body))


def of_request(key: SessionKey, id_: str) -> Asking[Story]:
    """Tell why a person was asked, and what became of that."""
    turn = yield from _begun(key, id_)
    if turn is None or not isinstance(turn.body, TurnFact):
        return Story(id=id_, kind="approval", facts=())
    story = yield from of_turn(key, turn, turn.body)
    about = [f for f in story.facts if isinstance(f.body, TurnFact) and _is_about(f.body, id_)]
    focus = about[-1] if about else turn
    return msgspec.structs.replace(story, id=id_, kind="approval", focus=focus, sends=())


def _begun(key: SessionKey, id_: str) -> Asking[Fact | None]:
    newest: Fact | None = yield Newest(key.turns)
    if newest is None:
        return None
    found: Fact | None = yield TurnWith(id_, newest.seq + 1)
    return found


def _is_about(turn: TurnFact, id_: str) -> bool:
    return any(isinstance(deed, Requested) and deed.id == id_ for deed in turn.deeds)


def of_session(key: SessionKey, id_: str, kind: str) -> Asking[Story]:
    """Tell what a session of the cortex was started for, by whom, and what came of it."""
    begun: Fact | None = yield Next(key.in_event("control"), 0)
    if begun is None:
        return Story(id=id_, kind=kind, facts=())
    story = yield from of_event(key, begun, getattr(begun.body, "id", ""))
    return msgspec.structs.replace(story, id=id_, kind=kind)


def of_effect(key: SessionKey, effect_id: str) -> Asking[Story]:
    """Tell the story of the turn that decided an effect."""
    turn = yield from _begun(key, effect_id)
    if turn is None or not isinstance(turn.body, TurnFact):
        return Story(id=effect_id, kind="turn", facts=())
    return (yield from of_turn(key, turn, turn.body))


def of_entries(
    id_: str,
    kind: str,
    entries: Sequence[Fact],
    made: Asking[Story] | None,
    worked: Asking[Story] | None = None,
) -> Asking[Story]:
    """Tell what became of a task, a grant or a memory.

    Args:
        made: the story of what made it.
        worked: that of the newest worker at a task, which its newest beginning started.
    """
    nothing = Story(id=id_, kind=kind, facts=())
    cause = nothing if made is None else (yield from made)
    work = nothing if worked is None else (yield from worked)
    begun = [number for number, fact in enumerate(entries, 1) if _is_beginning(fact)]
    place = begun[-1] if begun else len(entries)
    return Story(
        id=id_,
        kind=kind,
        facts=(*cause.facts, *entries[:place], *work.facts, *entries[place:]),
        focus=entries[-1],
        is_cut=cause.is_cut or work.is_cut,
    )


def _is_beginning(fact: Fact) -> bool:
    return isinstance(fact.body, KeptFact) and fact.body.name == "task.begun"


def deciding(key: SessionKey, effect_id: str) -> Asking[Fact | None]:
    """Return the turn that decided a send, found by what delivery wrote about it."""
    said: Fact | None = yield Newest(key.out_said(effect_id))
    if said is not None and isinstance(said.body, Said):
        turn: Fact | None = yield At(said.body.turn_seq)
        return turn
    closed: Fact | None = yield Newest(key.receipt(effect_id))
    if closed is None:
        return None
    # A receipt follows its turn closely; it doesn't name it.
    found: Fact | None = yield TurnWith(effect_id, closed.seq)
    return found


def of_signal(key: SessionKey, fact: Fact, kind: str, count: int) -> Asking[Story]:
    """Tell what the `count`-th signal of a kind, which a record gave, is about."""
    timers = _timers_of(fact.body, kind) if isinstance(fact.body, TurnFact) else ()
    if 1 <= count <= len(timers):
        timer_id, generation = timers[count - 1]
        return (yield from of_timer(key, timer_id, generation))
    return (yield from of_record(key, fact))


def _timers_of(turn: TurnFact, kind: str) -> tuple[tuple[str, int], ...]:
    """Return the follow-ups that the signals of a kind are about, in their order."""
    if kind == "timer.scheduled":
        return tuple((plan.timer_id, plan.generation) for plan in turn.plans)
    code = {"timer.voided": "void", "timer.cancelled": "cancelled"}.get(kind)
    names = [n.subject for n in turn.notes if n.code == code and n.subject not in turn.ended]
    closed = dict(turn.cancels)
    if not all(name in closed for name in names):
        return ()  # one was closed while the agent was at it: the turn tells
    return tuple((name, closed[name]) for name in names if name is not None)
