"""How a message is carried over a channel: the protocol as a generator, and its policy. Pure.

An order (a `Dispatch`) is closed by one receipt, or by another order, for the next channel. Until
then it is tried: `begun` is stored before each try and how it ended after it, so the log alone
tells what was done. :func:`carry` yields what it needs to know or wants done, whoever drives it
does that and sends the answer back. The same protocol runs against the broker and, in the property
tests, against a modelled log with replicas, crashes, and answers that come late or never.

Why two replicas never send the same try. Whoever sends has stored the `begun` of that try, and it
was stored only if the subject's last sequence was the one that had been read. A `begun` that
nobody ended is ended as `unknown` by whoever finds it, never as refused.

Why a channel without idempotency gets a message once at most. A try comes only after all before it
were refused for sure; after an `unknown` one the order is closed as ambiguous, for a person to see.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from vigil.backoff import Backoff
from vigil.channels.answers import Answer, NotTaken, Taken, Unclear
from vigil.contracts import Attempt, Receipt, ReceiptOutcome

from .orders import Order, Seen

REASON_LENGTH_MAX: Final = 500
CRASHED: Final = "whoever tried it ended in the middle"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel promises, and how long it is tried."""

    is_idempotent: bool
    attempts_max: int
    backoff: Backoff
    """Pauses between tries; what a receiver asks for is bounded by the longest, too."""
    patience_s: float
    """A try that began so long ago and has no end was cut off by a crash."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """How a try ended, and the time and chance of that moment."""

    answer: Answer
    now: datetime
    dice: float


# ---------------------------------------------------------------- what carry asks for


class ReadLog(msgspec.Struct, frozen=True):
    """Read what the log holds. Answer: `Seen`."""


class FindSpoken(msgspec.Struct, frozen=True):
    """Find out if a newer message of the person voids a retry. Answer: its sequence, or 0."""


class StoreAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Store an attempt if `expect` is the last sequence. Answer: its sequence, or None."""

    number: int
    state: Literal["begun", "refused", "unknown"]
    expect: int
    reason: str = ""
    status: int | None = None
    next_at: datetime | None = None
    sent: tuple[str, ...] = ()


class TrySend(msgspec.Struct, frozen=True):
    """Try it. Answer: `Sent`."""

    number: int


class StoreReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Store a receipt if `expect` is the last sequence. Answer: whether it is stored."""

    outcome: ReceiptOutcome
    reason: str
    expect: int
    sent: tuple[str, ...] = ()


class OrderNext(msgspec.Struct, frozen=True, kw_only=True):
    """Order it for another channel if this order is the last one. Answer: None."""

    channel: str
    otherwise: tuple[str, ...]


class Bury(msgspec.Struct, frozen=True):
    """Store the order's dead letter, which may be there already. Answer: None."""

    cause: str
    is_lost: bool
    """Whether nobody has it: the agent is told, which may find another way."""


Ask = ReadLog | FindSpoken | StoreAttempt | TrySend | StoreReceipt | OrderNext | Bury


class Later(msgspec.Struct, frozen=True):
    """The order isn't closed: look again at `at`."""

    at: datetime


Carrying = Generator[Ask, Any, Later | None]


# ---------------------------------------------------------------- the protocol


def carry(order: Order, terms: Terms | None) -> Carrying:
    """Carry an order as far as it can be now.

    Args:
        terms: None: there is no such channel (any more).

    Returns: when to look again; None: it is closed, or another order took its place.
    """
    while True:
        seen: Seen = yield ReadLog()
        if seen.dispatch_seq != order.seq:
            return None
        if seen.receipt is not None:
            yield from _bury(seen.receipt.outcome, seen.receipt.reason)
            return None
        if terms is None:
            reason = f"no channel named {order.record.channel!r}"
            yield from _fail(order, seen, reason)
            continue
        later = yield from _step(order, terms, seen)
        if later is not None:
            return later


def _step(order: Order, terms: Terms, seen: Seen) -> Carrying:
    """Do the next thing; None: it's done, look again."""
    last = seen.attempts[-1] if seen.attempts else None
    if last is None:
        return (yield from _try(order, terms, seen, number=1))
    if last.state == "begun":
        over_at = last.at + timedelta(seconds=terms.patience_s)
        if seen.now < over_at:
            return Later(over_at)
        unclear = Sent(answer=Unclear(reason=CRASHED), now=seen.now, dice=seen.dice)
        return (yield from _end(order, terms, seen, unclear))
    if last.next_at is None:
        outcome, reason = verdict(seen.attempts, terms)
        if outcome == "failed":
            yield from _fail(order, seen, reason)
        else:
            came = tuple(mark for one in seen.attempts for mark in one.sent)
            yield StoreReceipt(outcome=outcome, reason=reason, expect=seen.receipt_seq, sent=came)
        return None
    return (yield from _again(order, terms, seen, last.next_at))


def _fail(order: Order, seen: Seen, reason: str) -> Generator[Ask, Any, None]:
    """Go over to the next channel, if the receiver surely has nothing of it; or close it."""
    following = order.record.otherwise
    may_have_it = any(attempt.state == "unknown" for attempt in seen.attempts)
    if not following or may_have_it:
        yield StoreReceipt(outcome="failed", reason=reason, expect=seen.receipt_seq)
    elif not (yield from _drop_if_spoken(order, seen)):
        yield OrderNext(channel=following[0], otherwise=following[1:])


def _drop_if_spoken(order: Order, seen: Seen) -> Generator[Ask, Any, bool]:
    """Close an order that the person has spoken after, if that voids it; return whether it did."""
    spoke_seq: int = yield FindSpoken()
    if spoke_seq:
        reason = f"the person has spoken (sequence {spoke_seq}); {tally(seen.attempts)}"
        yield StoreReceipt(outcome="dropped", reason=reason, expect=seen.receipt_seq)
    return bool(spoke_seq)


def _again(order: Order, terms: Terms, seen: Seen, next_at: datetime) -> Carrying:
    """Try once more when it's time, unless the person has spoken meanwhile."""
    if seen.now < next_at:
        return Later(next_at)
    if order.record.requeued_by is None and (yield from _drop_if_spoken(order, seen)):
        return None
    return (yield from _try(order, terms, seen, number=seen.attempts[-1].number + 1))


def _try(order: Order, terms: Terms, seen: Seen, *, number: int) -> Carrying:
    seq: int | None = yield StoreAttempt(number=number, state="begun", expect=seen.attempt_seq)
    if seq is None:
        return None  # another replica began it
    sent: Sent = yield TrySend(number)
    if isinstance(sent.answer, Taken):
        return (yield from _delivered(order, seen, sent.answer))
    begun = Attempt(
        effect_id=order.record.effect_id,
        session_key=order.record.session_key,
        channel=order.record.channel,
        number=number,
        state="begun",
        at=seen.now,
    )
    seen = msgspec.structs.replace(seen, attempts=(*seen.attempts, begun), attempt_seq=seq)
    return (yield from _end(order, terms, seen, sent))


def _delivered(order: Order, seen: Seen, taken: Taken) -> Carrying:
    """Store that the receiver has it, whatever others concluded meanwhile."""
    reason = taken.reason[:REASON_LENGTH_MAX]
    while not (
        yield StoreReceipt(
            outcome="delivered", reason=reason, expect=seen.receipt_seq, sent=taken.sent
        )
    ):
        seen = yield ReadLog()
        if seen.dispatch_seq != order.seq or seen.receipt is not None:
            return None
    return None


def _end(order: Order, terms: Terms, seen: Seen, sent: Sent) -> Carrying:
    """Store how the newest try ended, unless somebody else did; then wait or close."""
    number, begun_seq = seen.attempts[-1].number, seen.attempt_seq
    end = end_of(number, sent, terms)
    while (yield _note(end, expect=begun_seq)) is None:
        found: Seen = yield ReadLog()
        if found.attempt_seq != begun_seq:
            return None
    return None if end.next_at is None else Later(end.next_at)


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a try ended, and when the next one follows; `next_at` None: never."""

    number: int
    state: Literal["refused", "unknown"]
    reason: str
    status: int | None
    next_at: datetime | None
    sent: tuple[str, ...] = ()


def _note(end: End, *, expect: int) -> StoreAttempt:
    return StoreAttempt(
        number=end.number,
        state=end.state,
        expect=expect,
        reason=end.reason,
        status=end.status,
        next_at=end.next_at,
        sent=end.sent,
    )


def _bury(outcome: ReceiptOutcome, reason: str) -> Generator[Ask, Any, None]:
    """What a person must see becomes a dead letter; may be repeated."""
    if outcome in ("failed", "ambiguous"):
        yield Bury(f"{outcome}: {reason}", outcome == "failed")


# ---------------------------------------------------------------- the policy


def end_of(number: int, sent: Sent, terms: Terms) -> End:
    """Decide what follows a try that was not taken: another one, or never."""
    answer = sent.answer
    assert not isinstance(answer, Taken)  # noqa: S101 - narrows the type
    is_clear = isinstance(answer, NotTaken)
    may_repeat = not answer.is_final if isinstance(answer, NotTaken) else terms.is_idempotent
    next_at = None
    if may_repeat and number < terms.attempts_max:
        wait_s = answer.wait_s if isinstance(answer, NotTaken) else 0.0
        delay_s = backoff_s(number, sent.dice, terms, wait_s=wait_s)
        next_at = sent.now + timedelta(seconds=delay_s)
    return End(
        number=number,
        state="refused" if is_clear else "unknown",
        reason=answer.reason[:REASON_LENGTH_MAX],
        status=answer.status,
        next_at=next_at,
        sent=() if isinstance(answer, NotTaken) else answer.sent,
    )


def backoff_s(number: int, dice: float, terms: Terms, *, wait_s: float = 0.0) -> float:
    """Return the pause after the try `number`, from half of a doubling step to all of it.

    What the receiver asked for is honoured, up to the longest pause.

    >>> terms = Terms(is_idempotent=True, attempts_max=8, backoff=Backoff(5.0, 60.0),
    ...               patience_s=15.0)
    >>> [backoff_s(n, 0.0, terms) for n in (1, 2, 3, 9)], backoff_s(1, 0.5, terms)
    ([2.5, 5.0, 10.0, 30.0], 3.75)
    >>> backoff_s(1, 0.0, terms, wait_s=20.0), backoff_s(1, 0.0, terms, wait_s=86_400.0)
    (20.0, 60.0)
    """
    step_s = terms.backoff.after(number)
    return max(step_s * (0.5 + dice / 2), min(wait_s, terms.backoff.max_s))


def verdict(attempts: Sequence[Attempt], terms: Terms) -> tuple[ReceiptOutcome, str]:
    """Decide how an order that isn't tried again is closed -> (outcome, reason)."""
    last = attempts[-1]
    if last.state == "unknown" and not terms.is_idempotent:
        return "ambiguous", f"{last.reason}; whether the receiver has it is not known"
    return "failed", f"{last.reason}; {tally(attempts)}"


def tally(attempts: Sequence[Attempt]) -> str:
    """Say how often it was tried, and in which tries the receiver may have taken it."""
    ends = [attempt for attempt in attempts if attempt.state != "begun"]
    tries = "1 try" if len(ends) == 1 else f"{len(ends)} tries"
    maybe = [str(attempt.number) for attempt in ends if attempt.state == "unknown"]
    return f"{tries}, may have arrived in {', '.join(maybe)}" if maybe else tries


# ---------------------------------------------------------------- records


def attempt_of(order: Order, note: StoreAttempt, *, now: datetime) -> Attempt:
    """Build the record of a try, or of its end."""
    record = order.record
    return Attempt(
        effect_id=record.effect_id,
        session_key=record.session_key,
        channel=record.channel,
        number=note.number,
        state=note.state,
        at=now,
        reason=note.reason,
        status=note.status,
        next_at=note.next_at,
        sent=note.sent,
    )


def receipt_of(order: Order, close: StoreReceipt, *, now: datetime) -> Receipt:
    """Build the receipt that closes an order."""
    return Receipt(
        effect_id=order.record.effect_id,
        session_key=order.record.session_key,
        outcome=close.outcome,
        at=now,
        reason=close.reason,
        sent=close.sent,
    )
