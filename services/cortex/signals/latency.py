"""How long branches take, and whether that changes (SPEC C-5). Pure.

The newest branches are compared with those before them: one number alone tells nobody whether an
agent that answers slowly always did.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from vigil.contracts import Signal

KEPT_MAX: Final = 200
"""Branches that ended, the newest."""
OPEN_MAX: Final = 1000
COMPARED_MIN: Final = 5
"""Of each half: fewer tell nothing."""
CHANGE: Final = 1.5
"""So many times longer is slower."""
ENDS: Final = ("branch.completed", "branch.failed")

Trend = Literal["unknown", "steady", "slower", "faster"]


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long the newest took, in seconds."""

    count: int
    p50_s: float
    p95_s: float
    earlier_p50_s: float | None
    """Of those before them."""
    trend: Trend


class BranchTimes:
    """Takes signals in order, and tells how long branches took."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, datetime] = OrderedDict()
        self._took: deque[float] = deque(maxlen=KEPT_MAX)

    def add(self, signals: Iterable[Signal]) -> None:
        """Take signals; those of anything else change nothing."""
        for signal in signals:
            if signal.session_key is None:
                continue
            if signal.kind == "branch.started":
                self._begun[signal.session_key] = signal.at
                if len(self._begun) > OPEN_MAX:
                    self._begun.popitem(last=False)
            elif signal.kind in ENDS:
                begun = self._begun.pop(signal.session_key, None)
                if begun is not None:
                    self._took.append((signal.at - begun).total_seconds())

    def latency(self) -> Latency | None:
        """Return how long they take; None: no branch ended yet."""
        return latency_of(tuple(self._took))


def latency_of(took: Sequence[float]) -> Latency | None:
    """Return what durations say, the oldest first.

    >>> latency_of([1.0] * 10 + [2.0] * 10).trend
    'slower'
    """
    if not took:
        return None
    newest = sorted(took[len(took) // 2 :])
    earlier = sorted(took[: len(took) // 2])
    before = _at(earlier, 0.5) if len(earlier) >= COMPARED_MIN else None
    now = _at(newest, 0.5)
    return Latency(
        count=len(took),
        p50_s=round(now, 3),
        p95_s=round(_at(newest, 0.95), 3),
        earlier_p50_s=None if before is None else round(before, 3),
        trend=_trend(before, now),
    )


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _trend(before: float | None, now: float) -> Trend:
    if before is None:
        return "unknown"
    if now > before * CHANGE:
        return "slower"
    return "faster" if now * CHANGE < before else "steady"
