"""What is carried over channels, as a fold of orders, tries and receipts. Pure.

An order says that a message is to go over a channel; tries follow, and a receipt ends it. Who
requeues a dead letter orders it anew, and what came before doesn't count any more.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from vigil.contracts import Attempt, Dispatch, Instant, Receipt
from vigil.contracts.vocabulary import RECEIPTS, ReceiptOutcome

from ..http.wire import Answer

DeliveryState = Literal["waiting", "delivered", "ambiguous", "failed", "dropped"]
"""`waiting`: it is tried, or will be. `ambiguous`: the receiver may have it, so it isn't sent again
by itself."""


def state_of(outcome: ReceiptOutcome) -> DeliveryState:
    """Return what became of a message, by how it ended.

    >>> state_of("sent"), state_of("void")
    ('delivered', 'dropped')
    """
    told = RECEIPTS[outcome].signal.partition(".")[2] or "delivered"
    found: DeliveryState = msgspec.convert(told, DeliveryState)
    return found


class DeliveryView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A message that was to go over a channel, and how far it is."""

    effect_id: str
    session_key: str
    channel: str
    state: DeliveryState
    ordered_at: Instant
    tries: int
    reason: str
    """Why the last try didn't work, or how it ended."""
    next_at: Instant | None
    """When it's tried again; null: not by itself."""
    ended_at: Instant | None
    requeued_by: str | None
    text: str = ""


class OrderFold:
    """The fold, in the order of the log."""

    def __init__(self) -> None:
        self._orders: dict[str, tuple[int, Dispatch]] = {}
        self._tries: dict[str, Attempt] = {}
        self._ends: dict[str, Receipt] = {}

    def take(self, seq: int, record: Dispatch | Attempt | Receipt) -> None:
        """Take the next record of a session."""
        if isinstance(record, Dispatch):
            self._orders.pop(record.effect_id, None)  # the newest order comes last
            self._orders[record.effect_id] = (seq, record)
            self._tries.pop(record.effect_id, None)
            self._ends.pop(record.effect_id, None)
        elif isinstance(record, Attempt):
            self._tries[record.effect_id] = record
        else:
            self._ends[record.effect_id] = record

    def newest(
        self, state: DeliveryState | None, limit: int
    ) -> list[tuple[Dispatch, DeliveryView]]:
        """Return those in that state (None: all), the newest order first."""
        orders = sorted(self._orders.values(), key=lambda pair: pair[1].at, reverse=True)
        shown = ((order, self._view(order)) for _, order in orders)
        return [pair for pair in shown if state in (None, pair[1].state)][:limit]

    def _view(self, order: Dispatch) -> DeliveryView:
        last, end = self._tries.get(order.effect_id), self._ends.get(order.effect_id)
        reason = (end.reason if end else "") or (last.reason if last else "")
        return DeliveryView(
            effect_id=order.effect_id,
            session_key=order.session_key,
            channel=order.channel,
            state="waiting" if end is None else state_of(end.outcome),
            ordered_at=order.at,
            tries=0 if last is None else last.number,
            reason=reason,
            next_at=None if last is None or end is not None else last.next_at,
            ended_at=None if end is None else end.at,
            requeued_by=order.requeued_by,
        )


def with_text(view: DeliveryView, text: str) -> DeliveryView:
    """Return the view with what was said."""
    return msgspec.structs.replace(view, text=text)
