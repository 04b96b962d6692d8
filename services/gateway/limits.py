"""How often one caller may come: token buckets, by whoever they prove to be.

The table is bounded: whoever wasn't seen for longest is forgotten, which gives them a full
bucket again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from .decide import allowance

CALLERS_MAX: Final = 10_000


class Limiter:
    """Token buckets, one for each caller."""

    def __init__(self, *, rate_per_s: float, burst: int, callers_max: int = CALLERS_MAX) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._callers_max = callers_max
        self._callers: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now_s: float) -> float:
        """Count one request at monotonic `now_s`; return 0, or the seconds to wait."""
        left, seen_s = self._callers.get(caller, (float(self._burst), now_s))
        left, wait_s = allowance(
            left, now_s - seen_s, rate_per_s=self._rate_per_s, burst=self._burst
        )
        self._callers[caller] = (left, now_s)
        self._callers.move_to_end(caller)
        if len(self._callers) > self._callers_max:
            self._callers.popitem(last=False)
        return wait_s
