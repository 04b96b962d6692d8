"""From one record to the first cause, and on to what came of it. Pure: it asks, and is answered.

Every record points to what came before it: a claim names its turn, a turn its event, a timer's
event the generation (the ordinal) of the turn that planned it. So the way back costs a few
reads, however long the session is; :mod:`.reads` answers what is asked here.

A chain has no end by itself: an agent may plan its next follow-up in each one. So it goes back
`HOPS_MAX` timers, and says if it was cut there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from vigil.contracts import (
    ChildStatus,
    Control,
    ControlPayload,
    Decision,
    Receipt,
    Said,
    SendPayload,
    Start,
    TimerFired,
    ToolResultEvent,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from .across import followed
from .asks import All, Asking, At, FirstTurn, Found, In, Letters, Newest, Next, TurnWith, within
from .facts import Fact, Gone, TurnFact, is_open
from .telling import HOPS_MAX, SendStory, Story, Telling, turns_about

RUN_MAX: Final = 5
"""Messages that are told because they filled the cap."""
SENDS_MAX: Final = 8
"""Messages of one exchange whose delivery is told."""


# ---------------------------------------------------------------- back to the first cause


def _back(telling: Telling, key: SessionKey, event: Fact) -> Asking[None]:
    """Tell how an event came about, back to the first cause."""
    for _ in range(HOPS_MAX):
        telling.add(event)
        before = yield from _before(telling, key, event)
        if before is None:
            return
        event = before
    telling.is_cut = True


def _before(telling: Telling, key: SessionKey, event: Fact) -> Asking[Fact | None]:
    """Tell what brought an event about and return the event before it, if that is known."""
    match event.body:
        case TimerFired(payload=fired):
            generation = fired.generation
            planned = yield FirstTurn(0, event.seq, lambda turn: turn.ordinal >= generation)
            return (yield from _back_to_event(telling, planned, generation))
        case ToolResultEvent(payload=result):
            return (yield from _asked(telling, result.call_id, event.seq))
        case Control(payload=ControlPayload(decision=Decision() as decision)):
            return (yield from _asked(telling, decision.approval_id, event.seq))
        case Control(payload=ControlPayload(status=ChildStatus() as status)):
            return (yield from _asked(telling, status.call_id, event.seq))
        case Control(payload=ControlPayload(start=Start() as start)):
            yield from _climb(telling, key, start)
    return None


def _asked(telling: Telling, id_: str, before: int) -> Asking[Fact | None]:
    """Tell the turn that asked for something and return the event that it was about."""
    turn: Fact | None = yield TurnWith(id_, before)
    if turn is None or not isinstance(turn.body, TurnFact):
        return None
    telling.add(turn)
    return (yield from _cause(telling, turn, turn.body))


def _climb(telling: Telling, key: SessionKey, start: Start) -> Asking[None]:
    """Tell how the session came about that started this one: back through all of them."""
    parent = _parent_of(key, start)
    if parent is None:
        return
    telling.place(key, parent, start.parent_turn)
    turn: Fact | None = yield In(parent, At(start.parent_turn))
    if turn is not None and isinstance(turn.body, TurnFact):
        yield from within(parent, _up(telling, parent, turn, turn.body))


def _up(telling: Telling, key: SessionKey, turn: Fact, body: TurnFact) -> Asking[None]:
    telling.add(turn)
    event = yield from _cause(telling, turn, body)
    if event is not None:
        yield from _back(telling, key, event)


def _parent_of(key: SessionKey, start: Start) -> SessionKey | None:
    """Return who started a session; a session of somebody else can't have."""
    try:
        parent = SessionKey.parse(start.parent)
    except InvalidInput:
        return None
    return parent if (parent.user, parent.agent) == (key.user, key.agent) else None


def _back_to_event(telling: Telling, planned: Fact | None, generation: int) -> Asking[Fact | None]:
    """Tell the turn that planned a timer and return the event that it was about."""
    if planned is None or not isinstance(planned.body, TurnFact):
        return None
    if planned.body.ordinal != generation:
        return None  # deleted since
    telling.add(planned)
    cause: Fact | None = yield from _cause(telling, planned, planned.body)
    return cause


def _cause(telling: Telling, turn: Fact, body: TurnFact) -> Asking[Fact | None]:
    """Tell the event of a turn and the turns between, and return the event."""
    if body.event is None:
        return None
    event: Fact | None = yield At(body.event.seq)
    if event is None:
        event = Fact(
            seq=body.event.seq,
            stream=turn.stream,
            subject=turn.subject,
            body=Gone(what="the event behind it, which is no longer in the log"),
        )
    telling.add(event)
    if event.seq + 1 < turn.seq:
        found = yield turns_about(event.seq, body.event.id, before=turn.seq)
        telling.take(found)
    return event


# ---------------------------------------------------------------- on to what came of it


def _trail(telling: Telling, key: SessionKey, effect_id: str) -> Asking[tuple[Fact, ...]]:
    """Return what delivery wrote about a send, and the dead letters about it."""
    subjects = (
        key.out_said(effect_id), key.receipt(effect_id), key.send(effect_id),
        key.attempt(effect_id),
    )  # fmt: skip
    found: Found = yield All(subjects)
    letters: Found = yield Letters(effect_id=effect_id)
    return telling.take(found) + telling.take(letters)


def _sent(
    telling: Telling, key: SessionKey, effect_id: str, payload: SendPayload | None
) -> Asking[SendStory]:
    trail = yield from _trail(telling, key, effect_id)
    story = SendStory(id=effect_id, payload=payload, trail=trail)
    last = story.last
    if payload is not None and isinstance(last, Receipt) and last.outcome == "void":
        spoke: Fact | None = yield Next(key.in_user, payload.fence)
        telling.add(spoke)
    return story


def _all_sent(
    telling: Telling, key: SessionKey, turns: Iterable[Fact], causes: Collection[str] = ()
) -> Asking[tuple[SendStory, ...]]:
    """Tell what became of what the turns say; with `causes`, because of those events."""
    sends = [
        send
        for fact in turns
        if isinstance(fact.body, TurnFact)
        for send in fact.body.sends
        if not causes or send.payload.caused_by in causes
    ]
    telling.is_cut = telling.is_cut or len(sends) > SENDS_MAX
    stories: list[SendStory] = []
    for send in sends[-SENDS_MAX:]:
        story = yield from _sent(telling, key, send.id, send.payload)
        stories.append(story)
    return tuple(stories)


def _exchange(
    telling: Telling, key: SessionKey, event: Fact, event_id: str
) -> Asking[tuple[Fact | None, tuple[SendStory, ...]]]:
    """Tell the turns about an event and what they said -> (the last of them, the sends)."""
    found: Found = yield turns_about(event.seq, event_id)
    turns = telling.take(found)
    letters: Found = yield Letters(seq=event.seq)
    telling.take(letters)
    yield from _run_before(telling, key, turns)
    sends = yield from _all_sent(telling, key, turns, {event_id, *_joined_to(turns, event_id)})
    return (turns[-1] if turns else None), sends


def _joined_to(turns: Iterable[Fact], event_id: str) -> Iterable[str]:
    """Return the event that an event was answered together with, if it was."""
    for fact in turns:
        if isinstance(fact.body, TurnFact) and fact.body.event is not None:
            notes = fact.body.notes
            if any(note.code == "joined" and note.subject == event_id for note in notes):
                yield fact.body.event.id


def _run_before(telling: Telling, key: SessionKey, turns: Iterable[Fact]) -> Asking[None]:
    """Tell the autonomous messages for which the gates refused one, newest first."""
    bodies = [fact.body for fact in turns if isinstance(fact.body, TurnFact)]
    refusals = {note.code: body.last_send for body in bodies for note in body.notes}
    limit = RUN_MAX if "blocked_cap" in refusals else 1
    effect_id = refusals.get("blocked_cap") or refusals.get("blocked_cooldown")
    while limit and effect_id is not None:
        said: Fact | None = yield Newest(key.out_said(effect_id))
        if said is None or not isinstance(said.body, Said) or not said.body.is_autonomous:
            return
        telling.add(said)
        turn: Fact | None = yield At(said.body.turn_seq)
        sends = turn.body.sends if turn is not None and isinstance(turn.body, TurnFact) else ()
        effect_id = next((s.payload.previous for s in sends if s.id == effect_id), None)
        limit -= 1


# ---------------------------------------------------------------- stories


def of_send(key: SessionKey, effect_id: str, turn: Fact | None) -> Asking[Story]:
    """Tell why a message was said, or was not. `turn`: the one that decided it, if it's there."""
    telling = Telling()
    payload = None
    if turn is not None and isinstance(turn.body, TurnFact):
        payload = next((s.payload for s in turn.body.sends if s.id == effect_id), None)
        telling.add(turn)
        event = yield from _cause(telling, turn, turn.body)
        if event is not None:
            yield from _back(telling, key, event)
    sent = yield from _sent(telling, key, effect_id, payload)
    yield from followed(telling, key)
    return Story(
        id=effect_id, kind="message", facts=telling.facts(), focus=turn, sends=(sent,),
        is_cut=telling.is_cut,
    )  # fmt: skip


def of_event(key: SessionKey, event: Fact, event_id: str) -> Asking[Story]:
    """Tell how an event came about and what was done about it."""
    telling = Telling()
    yield from _back(telling, key, event)
    last, sends = yield from _exchange(telling, key, event, event_id)
    yield from followed(telling, key)
    return Story(
        id=event_id, kind="event", facts=telling.facts(), focus=last or event, sends=sends,
        is_cut=telling.is_cut,
    )  # fmt: skip


def of_turn(key: SessionKey, turn: Fact, body: TurnFact) -> Asking[Story]:
    """Tell how a turn came about and what it did."""
    telling = Telling()
    telling.add(turn)
    event = yield from _cause(telling, turn, body)
    if event is not None:
        yield from _back(telling, key, event)
    yield from _run_before(telling, key, [turn])
    sends = yield from _all_sent(telling, key, [turn])
    yield from followed(telling, key)
    return Story(
        id=body.id, kind="turn", facts=telling.facts(), focus=turn, sends=sends,
        is_cut=telling.is_cut,
    )  # fmt: skip


def of_timer(key: SessionKey, timer_id: str, generation: int) -> Asking[Story]:
    """Tell who planned a follow-up and what became of it."""
    telling = Telling()
    focus: Fact | None = None
    sends: tuple[SendStory, ...] = ()
    planned: Fact | None = yield FirstTurn(0, None, lambda turn: turn.ordinal >= generation)
    before = yield from _back_to_event(telling, planned, generation)
    if not telling.facts():
        planned = None  # deleted since
    if before is not None:
        yield from _back(telling, key, before)
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
        telling.add(closed)
        focus, sends = yield from _closing(telling, key, closed, closed.body, timer_id)
        planned, generation = focus, _put_off_to(focus, timer_id)
        if not generation:
            break
    else:
        telling.is_cut = True
    yield from followed(telling, key)
    return Story(
        id=timer_id, kind="timer", facts=telling.facts(), focus=focus, sends=sends,
        timer_id=timer_id, is_cut=telling.is_cut,
    )  # fmt: skip


def _closing(
    telling: Telling, key: SessionKey, closed: Fact, body: TurnFact, timer_id: str
) -> Asking[tuple[Fact | None, tuple[SendStory, ...]]]:
    """Tell what ended a follow-up: it came due, or something else came first."""
    if body.event is None:
        return closed, ()
    event: Fact | None = yield At(body.event.seq)
    telling.add(event)
    if (
        event is not None
        and isinstance(event.body, TimerFired)
        and event.body.payload.timer_id == timer_id
    ):
        last, sends = yield from _exchange(telling, key, event, event.body.id)
        return last or closed, sends
    return closed, ()


def _put_off_to(focus: Fact | None, timer_id: str) -> int:
    """Return the generation that a held follow-up has from that turn on; 0: it wasn't held."""
    if focus is None or not isinstance(focus.body, TurnFact):
        return 0
    is_held = any(n.code == "held" and n.subject == timer_id for n in focus.body.notes)
    return focus.body.ordinal if is_held else 0
