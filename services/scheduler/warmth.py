"""What begins unasked waits until memory is whole (SPEC C-3).

A run that began before would know less than it could, and say so in what it leaves. It waits once
after a start: memory that is made anew later holds nothing up.
"""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from vigil.bus.bus import BusError
from vigil.errors import Unavailable
from vigil.observe import warmth
from vigil.observe.health import HEALTH, Health
from vigil.runtime import Context

log = structlog.get_logger("vigil.scheduler")

WINDOW_S = 0.3
"""How long answers are waited for."""
AGAIN_S = 1.0
REPLICAS_MAX = 1000


class WarmGate:
    """Opens once, for as long as the process lives."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._wait_s = context.settings.config.memory.warm_wait_s
        self.opened = asyncio.Event()
        if self._wait_s == 0:
            self.opened.set()

    @property
    def is_open(self) -> bool:
        return self.opened.is_set()

    async def run(self) -> None:
        """Ask until it opens."""
        until = self._clock.monotonic() + self._wait_s
        found: warmth.Warmth = "cold"
        while not self.is_open:
            found = await self._ask()
            if found in ("warm", "degraded") or self._clock.monotonic() >= until:
                self.opened.set()
            else:
                await asyncio.sleep(AGAIN_S)
        log.info("what is due may begin", action="scheduler.warm", warmth=found)

    async def _ask(self) -> warmth.Warmth:
        try:
            answers = await self._bus.ask_all(HEALTH, b"", count=REPLICAS_MAX, timeout=WINDOW_S)
        except (Unavailable, BusError):
            return "cold"
        return warmth.of(msgspec.json.decode(one, type=Health) for one in answers)
