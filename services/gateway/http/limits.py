"""How often one caller may come, and how much may be open at once."""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Final

from .decide import allowance
from .problem import too_many, unavailable

CALLERS_MAX: Final = 10_000
RETRY_S: Final = 5.0


class Limiter:
    """Token buckets, one for each caller.

    The table is bounded: whoever wasn't seen for longest is forgotten, which gives them a full
    bucket again.
    """

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


class Places:
    """What stays open for long (sockets, streams, waiting chats): bounded in all, and by user."""

    def __init__(self, *, places_max: int, per_user_max: int) -> None:
        self._places_max = places_max
        self._per_user_max = per_user_max
        self._taken: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many are taken now."""
        return self._taken.total()

    @contextlib.contextmanager
    def hold(self, user: str) -> Iterator[None]:
        """Take a place for as long as the block lasts.

        Raises:
            Problem: 503 if all are taken, 429 if this user has too many.
        """
        if self.count >= self._places_max:
            raise unavailable("too many connections are open here")
        if self._taken[user] >= self._per_user_max:
            raise too_many("you have too many connections open; end one first", RETRY_S)
        self._taken[user] += 1
        try:
            yield
        finally:
            self._taken[user] -= 1
            if not self._taken[user]:
                del self._taken[user]
