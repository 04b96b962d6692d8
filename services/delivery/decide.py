"""How a send is settled: the protocol as a generator that asks and is answered. Pure.

A send is settled once it is said (its message is in the transcript) or closed (it has a
receipt). :func:`settle` yields what it needs to know or wants written, whoever drives it does
that on the bus and sends the answer back. So the same protocol runs against the broker and, in
the property tests, against a modelled log with replicas, lost answers and repeats.

Why a send is never said twice. A claim is stored only if the transcript's last sequence is the
expected one, and there are three expectations:

* The fence. A send is said after its fence, so nothing after the fence means not said.
* The claim of the send before it, as this replica remembers it or found it in the log. Sends
  of a session are said in the order of their chain, so nothing after that claim means not said.
* The end of a full reading from the fence on, in which the send was not found.

A send for a channel that there is no more is said, too: the person reads it here, and its order
fails.

Why nothing void is said. Each of these also tells which user message is the newest before it
(`user_seq`). A voidable send is claimed only if that is its fence. Remembering the last claim
alone would not do: a direct reply may have been said after a newer user message.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from vigil.contracts import (
    Receipt,
    Said,
    SendMessage,
    SendPayload,
    Turn,
)
from vigil.subjects import SessionKey
from vigil.worker import turns

SERVICE: Final = "delivery"
LETTER: Final = "s"
"""Delivery's in the header of a turn."""
TAGS: Final = (b'"send_message"',)


class Tail(msgspec.Struct, frozen=True):
    """A settled send, and what is known about the transcript up to it."""

    effect_id: str
    seq: int = 0
    """Where it was said; 0: it was not, or the place is not known."""
    user_seq: int = 0
    """No user message lies between this one and `seq`. May be too high, never too low."""


class Heard(msgspec.Struct, frozen=True):
    """A transcript read from the fence on."""

    seq: int
    """The last sequence read; the fence if there was nothing."""
    user_seq: int
    """The newest user message; the fence if there was no newer one."""
    said_seq: int = 0
    """Where the send itself was found; 0: not yet."""


# ---------------------------------------------------------------- what settle asks for


class Find(msgspec.Struct, frozen=True):
    """Look for a settled send in the log. Answer: its `Tail`, or None."""

    effect_id: str


class Await(msgspec.Struct, frozen=True):
    """Wait until another send is settled. Answer: its `Tail`."""

    effect_id: str


class Claim(msgspec.Struct, frozen=True):
    """Publish the message if `expect` is the transcript's last sequence.

    Answer: its sequence, or None if it was refused or nobody knows.
    """

    expect: int


class Read(msgspec.Struct, frozen=True):
    """Read the transcript after a sequence. Answer: (subject, sequence) pairs in order."""

    after: int


class Close(msgspec.Struct, frozen=True):
    """Write a receipt unless there is one. Answer: None."""

    outcome: Literal["void", "failed"]
    reason: str


Ask = Find | Await | Claim | Read | Close


# ---------------------------------------------------------------- the protocol


def settle(
    key: SessionKey,
    send: SendMessage,
    tail: Tail | None,
    *,
    is_repeat: bool,
) -> Generator[Ask, Any, Tail]:
    """Settle one send.

    Args:
        tail: the session's last send that is known to be settled.
        is_repeat: whether the turn was delivered before, so that it may be settled already.

    Returns: the send's own tail.
    """
    payload = send.payload
    if tail is not None and tail.effect_id == send.id:
        return tail
    if is_repeat:
        found: Tail | None = yield Find(send.id)
        if found is not None:
            return found
    if payload.previous is not None and (tail is None or tail.effect_id != payload.previous):
        tail = yield Await(payload.previous)
    return (yield from _claim(key, send, tail))


def _claim(key: SessionKey, send: SendMessage, tail: Tail | None) -> Generator[Ask, Any, Tail]:
    payload = send.payload
    known = known_before(payload, tail)
    if known is not None:
        seq: int | None = yield Claim(known.seq)
        if seq is not None:
            return Tail(send.id, seq, known.user_seq)
    heard = Heard(payload.fence, payload.fence)
    while True:
        found: Iterable[tuple[str, int]] = yield Read(heard.seq)
        heard = listen(heard, key, send.id, found)
        if heard.said_seq:
            return Tail(send.id, heard.said_seq, heard.user_seq)
        if payload.is_voidable and heard.user_seq > payload.fence:
            yield Close("void", f"the person spoke first (sequence {heard.user_seq})")
            return Tail(send.id)
        seq = yield Claim(heard.seq)
        if seq is not None:
            return Tail(send.id, seq, heard.user_seq)


def known_before(payload: SendPayload, tail: Tail | None) -> Heard | None:
    """Return what may be expected before any reading; None: the transcript must be read.

    >>> send = SendPayload(text="hi", caused_by="e", fence=5, previous="p", is_voidable=True)
    >>> known_before(send, None)
    Heard(seq=5, user_seq=5, said_seq=0)
    >>> known_before(send, Tail("p", 7, 5))
    Heard(seq=7, user_seq=5, said_seq=0)
    >>> known_before(send, Tail("p", 7, 6)) is None
    True
    """
    fence = payload.fence
    if tail is None or tail.effect_id != payload.previous or tail.seq <= fence:
        return Heard(fence, fence)
    if payload.is_voidable and tail.user_seq > fence:
        return None
    return Heard(tail.seq, max(tail.user_seq, fence))


def listen(
    heard: Heard, key: SessionKey, effect_id: str, found: Iterable[tuple[str, int]]
) -> Heard:
    """Fold more of the transcript into what was heard."""
    seq, user_seq, said_seq = heard.seq, heard.user_seq, heard.said_seq
    user, own = key.in_user, key.out_said(effect_id)
    for subject, at in found:
        seq = at
        if subject == user:
            user_seq = at
        elif subject == own and not said_seq:
            said_seq = at
    return Heard(seq, user_seq, said_seq)


def found_said(effect_id: str, seq: int) -> Tail:
    """Return the tail of a send found in the log; what came before it was not read."""
    return Tail(effect_id, seq, seq)


# ---------------------------------------------------------------- turns in, records out


def read_turn(subject: str, data: bytes) -> tuple[SessionKey, Turn]:
    """Decode a turn and the session that it was stored under. Raises: InvalidInput."""
    return turns.read_turn(subject, data, sends_of)


def sends_of(turn: Turn) -> list[SendMessage]:
    """Return what the turn says, in order."""
    return [effect for effect in turn.effects if isinstance(effect, SendMessage)]


def holds(turn: Turn, effect_id: str) -> bool:
    """Tell whether the turn decided that send."""
    return any(send.id == effect_id for send in sends_of(turn))


def said(key: SessionKey, send: SendMessage, *, turn_seq: int, now: datetime) -> Said:
    """Build the message that claims a send."""
    payload = send.payload
    return Said(
        id=send.id,
        session_key=str(key),
        text=payload.text,
        at=now,
        caused_by=payload.caused_by,
        turn_seq=turn_seq,
        tag=payload.tag,
        is_autonomous=payload.is_autonomous,
        channel=payload.channel,
        is_tainted=payload.is_tainted,
        asks=payload.asks,
        is_urgent=payload.is_urgent,
        attachments=payload.attachments,
    )


def receipt(key: SessionKey, effect_id: str, close: Close, *, now: datetime) -> Receipt:
    """Build the receipt of a send that is not said."""
    return Receipt(
        effect_id=effect_id,
        session_key=str(key),
        outcome=close.outcome,
        at=now,
        reason=close.reason,
    )
