"""From one record to the first cause, and on to what came of it. Pure: it asks, and is answered.

Every record points to what came before it: a claim names its turn, a turn its event, a timer's
event the generation (the ordinal) of the turn that planned it. So the way back costs a few
reads, however long the session is; :mod:`.reading` answers what is asked here.

A chain has no end by itself: an agent may plan its next follow-up in each one. So it goes back
`HOPS_MAX` timers, and says if it was cut there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from vigil.contracts import (
    Attempt,
    Dispatch,
    Receipt,
    Said,
    SendPayload,
    TimerFired,
    Turn,
)
from vigil.subjects import SessionKey

from .asks import All, Asking, At, FirstTurn, Found, Letters, Newest, Next, Turns
from .facts import Fact, Gone, TurnFact, is_open

HOPS_MAX: Final = 25
RUN_MAX: Final = 5
"""Messages that are told because they filled the cap."""
SENDS_MAX: Final = 8
"""Messages of one exchange whose delivery is told."""


# ---------------------------------------------------------------- what comes of it


class SendStory(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one decided message."""

    id: str
    payload: SendPayload | None
    """None: the turn that decided it isn't there any more."""
    trail: tuple[Fact, ...]
    """Claim, orders, tries, receipt, dead letters: by sequence, dead letters last."""

    @property
    def said(self) -> Said | None:
        return next((f.body for f in self.trail if isinstance(f.body, Said)), None)

    @property
    def last(self) -> Receipt | Dispatch | Attempt | Said | None:
        """What counts now: the newest of them, a receipt after the tries it ends."""
        found = None
        for fact in self.trail:
            if isinstance(fact.body, Receipt | Dispatch | Attempt | Said):
                found = fact.body
        return found


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A chain of records, oldest first, and what to say of it at the end."""

    id: str
    kind: str
    """message, timer, event, turn, dead_letter or signal: what the id names."""
    facts: tuple[Fact, ...]
    focus: Fact | None = None
    """The record that the id names, or that decided about it."""
    sends: tuple[SendStory, ...] = ()
    timer_id: str | None = None
    is_cut: bool = False


class Telling:
    """Collects the records of a story, each once, in the order of the log."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int], Fact] = {}
        self.is_cut = False

    def add(self, *facts: Fact | None) -> None:
        for fact in facts:
            if fact is not None:
                self._facts[fact.stream, fact.seq] = fact

    def take(self, found: Found) -> tuple[Fact, ...]:
        self.add(*found.facts)
        self.is_cut = self.is_cut or found.is_cut
        return found.facts

    def facts(self) -> tuple[Fact, ...]:
        """Return them: those of the session by sequence, then dead letters."""
        order = sorted(self._facts, key=lambda place: (place[0] != "SESSIONS", place[1]))
        return tuple(self._facts[place] for place in order)


# ---------------------------------------------------------------- back to the first cause


def _back(telling: Telling, event: Fact) -> Asking[None]:
    """Tell how an event came about, back to the first cause."""
    for _ in range(HOPS_MAX):
        telling.add(event)
        if not isinstance(event.body, TimerFired):
            return
        generation = event.body.payload.generation
        planned: Fact | None = yield FirstTurn(0, event.seq, lambda t, g=generation: t.ordinal >= g)  # type: ignore[misc]
        before = yield from _back_to_event(telling, planned, generation)
        if before is None:
            return
        event = before
    telling.is_cut = True


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
            body=Gone(what="the event behind it, which is no longer in the log"),
        )
    telling.add(event)
    if event.seq + 1 < turn.seq:
        found = yield _turns_about(event.seq, body.event.id, before=turn.seq)
        telling.take(found)
    return event


def _turns_about(seq: int, event_id: str, *, before: int | None = None) -> Turns:
    def is_about(turn: Turn) -> bool:
        if (turn.event is not None and turn.event.seq == seq) or event_id in turn.ended:
            return True
        return any(note.subject == event_id for note in turn.notes)

    def is_last(turn: Turn) -> bool:
        return event_id in turn.ended or (is_about(turn) and turn.outcome == "ignored")

    return Turns(seq, before, is_about, is_last)


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
    found: Found = yield _turns_about(event.seq, event_id)
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


def _called(telling: Telling, key: SessionKey) -> Asking[None]:
    """Tell who took up the tool calls of the turns so far, and what they answered."""
    for fact in telling.facts():
        if not isinstance(fact.body, TurnFact):
            continue
        if fact.body.asked:
            claims: Found = yield All(tuple(key.call(asked.id) for asked in fact.body.asked))
            telling.take(claims)
        if fact.body.folded:
            result: Fact | None = yield At(fact.body.folded)
            telling.add(result)


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
            yield from _back(telling, event)
    sent = yield from _sent(telling, key, effect_id, payload)
    yield from _called(telling, key)
    return Story(
        id=effect_id, kind="message", facts=telling.facts(), focus=turn, sends=(sent,),
        is_cut=telling.is_cut,
    )  # fmt: skip


def of_event(key: SessionKey, event: Fact, event_id: str) -> Asking[Story]:
    """Tell how an event came about and what was done about it."""
    telling = Telling()
    yield from _back(telling, event)
    last, sends = yield from _exchange(telling, key, event, event_id)
    yield from _called(telling, key)
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
        yield from _back(telling, event)
    yield from _run_before(telling, key, [turn])
    sends = yield from _all_sent(telling, key, [turn])
    yield from _called(telling, key)
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
        yield from _back(telling, before)
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
    yield from _called(telling, key)
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
