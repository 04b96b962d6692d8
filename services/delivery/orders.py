"""Orders: what is to be carried over a channel, and what the log holds about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from vigil.contracts import (
    Attempt,
    Dispatch,
    Receipt,
    ReceiptOutcome,
    Said,
    SendMessage,
    ToldEvent,
    ToldPayload,
    decode_dispatch,
)
from vigil.errors import InvalidInput
from vigil.minds import LOST_MESSAGE, mind_of
from vigil.subjects import SessionKey

TOLD: Final = (
    "What you said at {at:%Y-%m-%d %H:%M} UTC in the thread {thread} reached the person over no "
    "channel. They see it when they open that conversation: {text}"
)
TOLD_LENGTH_MAX: Final = 500


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be carried: a dispatch, and where it is stored."""

    seq: int
    record: Dispatch


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the log holds about an effect, and the time and chance of this moment."""

    now: datetime
    dice: float
    """0.0 <= dice < 1.0"""
    dispatch_seq: int
    """The newest order for the effect; an older one is superseded."""
    attempts: tuple[Attempt, ...] = ()
    """Since the newest order."""
    attempt_seq: int = 0
    """The last sequence on the subject of attempts, of whatever order."""
    receipt: Receipt | None = None
    """Since the newest order."""
    receipt_seq: int = 0
    """The last sequence on the subject of receipts, of whatever order."""


def order_of(
    key: SessionKey, send: SendMessage, said: Said, said_seq: int, channel: str, *, now: datetime
) -> Dispatch:
    """Build the order that a turn gives."""
    return Dispatch(
        effect_id=said.id,
        session_key=str(key),
        channel=channel,
        said_seq=said_seq,
        at=now,
        otherwise=send.payload.otherwise,
    )


def next_of(order: Order, channel: str, otherwise: tuple[str, ...], *, now: datetime) -> Dispatch:
    """Build the order for the channel that follows one that refused."""
    before = order.record
    return replace(before, channel=channel, at=now, otherwise=otherwise, instead_of=before.channel)


def lost(key: SessionKey, said: Said, *, now: datetime) -> ToldEvent:
    """Build what the mind is told of a message that no channel took. It stands in its
    conversation; why it wasn't taken are others' words, and stay out."""
    payload = ToldPayload(
        origin=str(key),
        text=TOLD.format(at=said.at, thread=key.thread, text=said.text[:TOLD_LENGTH_MAX]),
        what=LOST_MESSAGE,
        title=said.channel,
        is_tainted=said.is_tainted,
    )
    mind = str(mind_of(key.scope))
    return ToldEvent(id=f"lost-{said.id}", session_key=mind, created_at=now, payload=payload)


def read_order(subject: str, seq: int, data: bytes) -> tuple[SessionKey, Order]:
    """Decode an order and the session that it was stored under.

    Raises:
        InvalidInput: it is no order, or says something else than its subject.
    """
    key = SessionKey.of_subject(subject)
    record = decode_dispatch(data)
    if record.session_key != str(key) or key.send(record.effect_id) != subject:
        raise InvalidInput("dispatch", f"does not belong on {subject}")
    return key, Order(seq=seq, record=record)


def fold(
    order: Order,
    found: Sequence[tuple[int, Dispatch | Attempt | Receipt]],
    *,
    now: datetime,
    dice: float,
) -> Seen:
    """Fold what is stored about an effect, in order, as (sequence, record)."""
    newest = max((seq for seq, one in found if isinstance(one, Dispatch)), default=order.seq)
    attempts = [(seq, one) for seq, one in found if isinstance(one, Attempt)]
    receipts = [(seq, one) for seq, one in found if isinstance(one, Receipt)]
    newer = [one for seq, one in receipts if seq > newest]
    return Seen(
        now=now,
        dice=dice,
        dispatch_seq=newest,
        attempts=tuple(one for seq, one in attempts if seq > newest),
        attempt_seq=attempts[-1][0] if attempts else 0,
        receipt=newer[-1] if newer else None,
        receipt_seq=receipts[-1][0] if receipts else 0,
    )


def may_requeue(seen: Seen) -> str | None:
    """Return what speaks against trying the newest order again, or None.

    An order that could not be read has no receipt and no attempt: nobody works on it.
    """
    if seen.receipt is not None:
        outcome = seen.receipt.outcome
        return None if outcome in ("failed", "ambiguous") else f"it ended as {outcome}"
    return "it is still being tried" if seen.attempts else None


def outcome_by_report(seen: Seen, *, is_delivered: bool) -> ReceiptOutcome | None:
    """Return how an order ends by what the channel's server reports; None: as it is known.

    Only what may have been sent can be reported on: a report about anything else is forged.
    """
    known = None if seen.receipt is None else seen.receipt.outcome
    may_have_it = bool(seen.attempts) and seen.attempts[-1].state != "refused"
    if known is None and not may_have_it:
        return None
    if is_delivered:
        return "delivered" if known in (None, "ambiguous") else None
    return "failed" if known in (None, "ambiguous", "delivered") else None
