"""Whether a message would be answered now, asked from the services themselves.

Every replica listens on the same subject and answers for itself, so the answers of a short
window are what there is. They are kept for a second: probes come often.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from vigil.bus.bus import BusError
from vigil.errors import Unavailable
from vigil.observe.health import BROKER, HEALTH, Health
from vigil.runtime import Context

NEEDED: Final = ("cortex", "scheduler", "delivery")
WINDOW_S: Final = 0.3
FRESH_S: Final = 1.0
REPLICAS_MAX: Final = 1000


class ReplicaHealth:
    """The health of all replicas, as of at most a second ago."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._lock = asyncio.Lock()
        self._asked_s = float("-inf")
        self._replicas: tuple[Health, ...] = ()

    async def replicas(self) -> tuple[Health, ...]:
        """Return what each replica says about itself, by service and pid."""
        async with self._lock:
            if self._clock.monotonic() - self._asked_s >= FRESH_S:
                self._replicas = await self._ask()
                self._asked_s = self._clock.monotonic()
            return self._replicas

    async def checks(self) -> dict[str, bool]:
        """Return what must be true for a message to be answered, and whether it is."""
        replicas = await self.replicas()
        ready = {replica.service for replica in replicas if replica.ready}
        stores = not self._bus.unconfirmed and all(
            replica.ready for replica in replicas if replica.service == BROKER
        )
        checks = {"bus": self._bus.is_connected, "storage": stores}
        return checks | {name: name in ready for name in NEEDED}

    async def _ask(self) -> tuple[Health, ...]:
        if not self._bus.is_connected:
            return ()
        try:
            answers = await self._bus.ask_all(HEALTH, b"", count=REPLICAS_MAX, timeout=WINDOW_S)
        except (Unavailable, BusError):
            return ()
        replicas = [msgspec.json.decode(answer, type=Health) for answer in answers]
        return tuple(sorted(replicas, key=lambda replica: (replica.service, replica.pid)))
