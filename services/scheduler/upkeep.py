"""Asking memory to look after itself: only the active scheduler does, so it's asked once.

The next round begins after the one before it was answered, so a pass that takes long is never
started again meanwhile. What memory does then, and over whose memories, is for it alone to know.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.errors import VigilError
from vigil.memory.client import MemoryClient
from vigil.memory.operations.maintain import Maintain, Maintained
from vigil.observe import trace
from vigil.settings.memory import MemorySection

from . import rounds
from .rounds import Round

log = structlog.get_logger("vigil.scheduler")

ANSWER_TIMEOUT_S: Final = 60.0


class Upkeep:
    """Asks for passes, for one term."""

    def __init__(
        self, bus: Bus, clock: Clock, config: MemorySection, *, first_s: float = rounds.FIRST_S
    ) -> None:
        self._client = MemoryClient(bus)
        self._clock = clock
        self._config = config
        self._first_s = first_s

    async def run(self) -> None:
        """Ask whenever a round is due, until cancelled."""
        ahead = rounds.begin(
            self._clock.monotonic(),
            maintenance_s=self._config.maintenance_every_s,
            association_s=self._config.association_every_s,
            first_s=self._first_s,
        )
        while True:
            await asyncio.sleep(rounds.wait_s(ahead, self._clock.monotonic()))
            one = rounds.due(ahead, self._clock.monotonic())
            if one is None:
                continue
            begun_s = self._clock.monotonic()
            done = await self._ask(one)
            now_s = self._clock.monotonic()
            ahead = rounds.after(
                ahead,
                one,
                now_s,
                was_answered=done is not None,
                more_after_s=now_s - begun_s if done is not None and done.has_more else None,
            )

    async def _ask(self, one: Round) -> Maintained | None:
        """Ask for a pass; return what it did, if somebody answered."""
        trace.current.set(trace.new())
        try:
            done = await self._client.maintain_all(
                Maintain(what=one.what), timeout_s=ANSWER_TIMEOUT_S
            )
        except (VigilError, msgspec.MsgspecError) as error:
            log.info("no pass", action="scheduler.upkeep", what=one.what, error=str(error))
            return None
        log.info(
            "looked after",
            action="scheduler.upkeep",
            what=one.what,
            pruned=done.pruned,
            merged=done.merged,
            associated=done.associated,
        )
        return done
