"""The log of a run, taken apart by session: what came in, the turns, what was said, receipts.

It decodes and sorts, and judges nothing; that is :mod:`tests.chaos.checker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from vigil.addressees import is_turn
from vigil.bus.bus import Message
from vigil.contracts import (
    Attempt,
    Dispatch,
    Event,
    Receipt,
    Said,
    SendMessage,
    State,
    TimerFired,
    Turn,
    UserMessage,
    decode_attempt,
    decode_dispatch,
    decode_event,
    decode_receipt,
    decode_said,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

T = TypeVar("T")
CARRIED = ("send", "attempt", "receipt")
"""What is recorded about an effect, beside what was said."""


class Stored(msgspec.Struct, Generic[T], frozen=True):
    """A record and its sequence in the stream."""

    seq: int
    record: T


class SessionLog:
    """Everything stored about one session, in order."""

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.events: dict[int, Event | None] = {}
        """By sequence; None: it can't be read."""
        self.people: list[int] = []
        """Sequences of what the person said, readable or not."""
        self.turns: list[Stored[Turn]] = []
        self.said: list[Stored[Said]] = []
        self.receipts: list[Stored[Receipt]] = []
        self.orders: list[Stored[Dispatch]] = []
        self.attempts: list[Stored[Attempt]] = []
        self.lines: list[str] = []
        """One line for each record, for whoever looks for the cause."""

    def add(self, message: Message) -> None:
        """Take the next message of this session."""
        kind = message.subject.split(".")[4:]
        if is_turn(message.subject):
            self.turns.append(Stored(message.seq, decode_turn(message.data)))
        elif kind[0] == "out":
            self.said.append(Stored(message.seq, decode_said(message.data)))
        elif kind[0] == "receipt":
            self.receipts.append(Stored(message.seq, decode_receipt(message.data)))
        elif kind[0] == "send":
            self.orders.append(Stored(message.seq, decode_dispatch(message.data)))
        elif kind[0] == "attempt":
            self.attempts.append(Stored(message.seq, decode_attempt(message.data)))
        else:
            self.events[message.seq] = _event(message.data)
            if kind[1] == "said":
                self.people.append(message.seq)
        self.lines.append(self._line(message, ".".join(kind[:2])))

    def _line(self, message: Message, kind: str) -> str:
        words = f"{message.seq:6} {kind[:20]:20}"
        if is_turn(kind):
            turn = self.turns[-1].record
            effects = [f"{e.__struct_config__.tag}:{e.id[:6]}" for e in turn.effects]
            cause = "" if turn.event is None else f"{turn.event.type}@{turn.event.seq}"
            notes = [f"{n.code}({n.subject or ''})" for n in turn.notes]
            return (
                f"{words} {turn.created_at:%H:%M:%S.%f} #{turn.ordinal} {turn.outcome} {cause} "
                f"position={turn.state.position} open={sorted(turn.state.follow_ups)} "
                f"effects={effects} notes={notes} ended={[i[:12] for i in turn.ended]}"
            )
        if kind.startswith("out"):
            said = self.said[-1].record
            return f"{words} {said.at:%H:%M:%S.%f} {said.id[:6]} {said.text[:60]!r}"
        if kind.startswith(CARRIED):
            return f"{words} {self._carried(kind)}"
        event = self.events[message.seq]
        if isinstance(event, UserMessage):
            return f"{words} {event.created_at:%H:%M:%S.%f} {event.id[:12]} {event.payload.text!r}"
        if isinstance(event, TimerFired):
            due = f"{event.payload.timer_id}/{event.payload.generation} {event.payload.fire_at}"
            return f"{words} {event.created_at:%H:%M:%S.%f} {event.id[:12]} {due}"
        return f"{words} {event}"

    def _carried(self, kind: str) -> str:
        what: str
        if kind.startswith("send"):
            order = self.orders[-1].record
            at, effect, what = order.at, order.effect_id, f"over {order.channel}"
        elif kind.startswith("attempt"):
            attempt = self.attempts[-1].record
            at, effect = attempt.at, attempt.effect_id
            what = f"{attempt.number} {attempt.state} {attempt.reason}"
        else:
            receipt = self.receipts[-1].record
            at, effect, what = receipt.at, receipt.effect_id, receipt.outcome
        return f"{at:%H:%M:%S.%f} {effect[:6]} {what}"

    # ------------------------------------------------------------ what follows from it

    @property
    def state(self) -> State:
        """The state after the last turn."""
        return self.turns[-1].record.state if self.turns else State()

    def sends(self) -> list[tuple[Stored[Turn], SendMessage]]:
        """Return every send that was decided, in order, with its turn."""
        return [
            (turn, effect)
            for turn in self.turns
            for effect in turn.record.effects
            if isinstance(effect, SendMessage)
        ]

    def settled(self) -> set[str]:
        """Return the ids of sends that are said or have a receipt."""
        said = {stored.record.id for stored in self.said}
        return said | {stored.record.effect_id for stored in self.receipts}

    def steps(self) -> list[tuple[State, Stored[Turn]]]:
        """Return each turn with the state before it."""
        states = [State(), *(turn.record.state for turn in self.turns)]
        return list(zip(states, self.turns, strict=False))


def _event(data: bytes) -> Event | None:
    try:
        return decode_event(data)
    except InvalidInput:
        return None


class Histories:
    """All sessions of a log."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.sessions: dict[str, SessionLog] = {}
        self.count = 0
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Take the next message of the stream."""
        key = SessionKey.of_subject(message.subject)
        name = str(key)
        if name not in self.sessions:
            self.sessions[name] = SessionLog(key)
        self.sessions[name].add(message)
        self.count += 1

    def __iter__(self) -> Iterator[SessionLog]:
        return iter(self.sessions.values())

    def of(self, session: str) -> SessionLog:
        """Return the log of a session; empty if nothing was stored."""
        return self.sessions.get(session) or SessionLog(SessionKey.parse(session))
