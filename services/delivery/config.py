"""The limits of delivery: what is held, how long is waited, how often is tried.

They bound memory and the rate of retries. None of them decides whether something is said.
"""

from __future__ import annotations

import msgspec

from vigil.backoff import Backoff
from vigil.subjects import SessionKey
from vigil.worker.effects import WorkLimits
from vigil.worker.patience import Patience


class DeliveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Every limit of one replica."""

    turns: WorkLimits = WorkLimits(
        in_hand_max=2048,
        after_refusal=Backoff(1.0, 30.0),
        refusals_max=8,
        stop_grace_s=10.0,
        stop_delay_s=0.5,
    )
    """What was not begun comes to another replica after this connection is closed."""
    sends: WorkLimits = WorkLimits(
        in_hand_max=4096,
        abreast=8,
        lane_max=64,
        hold_every_s=2.0,
        after_refusal=Backoff(1.0, 30.0),
        stop_grace_s=10.0,
        stop_delay_s=0.5,
    )
    """A lane is a channel: a slow receiver holds up nobody but itself. An order is never given up
    but by its channel's own limits."""
    tails_max: int = 10_000
    """Sessions whose last settled send is remembered; others are looked up in the log."""
    predecessor_waits_s: tuple[float, ...] = (0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.38)
    """Pauses between looks for a send that must be settled first: 2 s in all."""
    after_loss: Backoff = Backoff(0.004, 0.05)
    """Pauses after a claim that lost, from the second one on: somebody else wrote each time."""
    after_failure: Backoff = Backoff(0.05, 1.0)
    """Pauses while the broker does not answer..."""
    failures_max: int = 6
    """...so often; then the turn is given back."""
    page_messages: int = 256
    """How much of a transcript is read at once."""
    read_timeout_s: float = 10.0
    search_from_delivery: int = 2
    """From this delivery on, a missing predecessor is searched in the session's turns."""
    attempt_grace_s: float = 5.0
    """A try that has no end so long after its timeout was cut off by a crash."""
    unreadable_delay_s: float = 60.0
    """When an order comes again of which something can't be read: after an upgrade, say."""


def patience_of(limits: DeliveryLimits, key: SessionKey, effect_id: str) -> Patience:
    """Return the patience of one attempt at an effect with a broker that does not answer."""
    return Patience(
        "delivery.retry",
        limits.after_failure,
        retries_max=limits.failures_max,
        session=str(key),
        effect=effect_id,
    )
