"""Time and chance, injected: nothing else in Vigil reads a clock or rolls dice."""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Protocol
from uuid import uuid4

PACE_S: Final[ContextVar[float]] = ContextVar("PACE_S", default=1.0)
"""So often, in real time, what waits for a moment looks at the wall clock, which may be set; more
often where a story moves it (`vigil.evals`)."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """Return the wall time, aware UTC: for what is stored."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump: for durations within one process."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


TOGETHER_S_MAX: Final = 10.0
"""Who looks less often than that looks in its own time, at a whole second."""


def until_next(every_s: float, now_s: float) -> float:
    """Return the seconds until the next look of whoever looks so often: all of them at the same
    moments, so that a process at rest wakes once a second for all, and not once for each.

    Args:
        now_s: of a clock that never jumps, the same for all of them.

    >>> until_next(1.0, 12.25), until_next(1.0, 12.96875), until_next(60.0, 12.25)
    (0.75, 1.03125, 60.75)
    """
    if every_s > TOGETHER_S_MAX:
        return math.ceil(now_s + every_s) - now_s
    left_s = every_s - now_s % every_s
    return left_s if left_s > every_s / 20 else left_s + every_s


def new_id() -> str:
    """Return a random id (uuid4)."""
    return str(uuid4())
