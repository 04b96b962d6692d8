"""Time and chance, injected: nothing else in Vigil reads a clock or rolls dice."""

from __future__ import annotations

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


def new_id() -> str:
    """Return a random id (uuid4)."""
    return str(uuid4())
