"""What slows down a source from outside that floods a session (SPEC C-4).

The cortex sees the flood in the signals, and opens the circuit of what comes in for that session.
While it's open each source may tell that session something now and then; a source that tells it
little doesn't notice.
"""

from __future__ import annotations

from typing import Final

from vigil.bus.bus import Bus
from vigil.circuits import OUTSIDE, CircuitOpen, Circuits
from vigil.clock import Clock
from vigil.subjects import SessionKey

from .limits import Limiter
from .problem import too_many

SLOW_PER_S: Final = 0.1
SLOW_BURST: Final = 3


class Throttle:
    """Lets events from outside in; `follow` has to run."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._clock = clock
        self._circuits = Circuits(bus, clock, "gateway")
        self._limiter = Limiter(rate_per_s=SLOW_PER_S, burst=SLOW_BURST)

    async def follow(self) -> None:
        """Know which sessions are flooded; runs until it's cancelled."""
        await self._circuits.follow()

    async def let_in(self, session: SessionKey, source: str) -> None:
        """Let an event in. Raises: Problem, 429: there were too many of that source."""
        component = f"{OUTSIDE}{session}"
        if self._circuits.state(component) == "closed":
            return
        try:
            passed = await self._circuits.enter(component)
        except CircuitOpen:
            wait_s = self._limiter.take(f"{session} {source}", self._clock.monotonic())
            if wait_s:
                raise too_many(
                    "this source floods the session: it is slowed down", wait_s
                ) from None
            return
        await self._circuits.succeeded(passed)  # its time is over
