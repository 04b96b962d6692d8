"""Dead letters of memory: stored, however long that takes, before anything goes on without them."""

from __future__ import annotations

from typing import Final

import structlog

from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.errors import InvalidInput
from vigil.observe.metrics import Metrics
from vigil.subjects import Scope, SessionKey
from vigil.worker import dead_letters

from . import work
from .config import Limits

log = structlog.get_logger("vigil.memory")

THREAD: Final = "_memory"
"""In the place of a thread, for what belongs to no conversation."""


class Letters:
    """Where what no try could use is left for a person."""

    def __init__(self, bus: Bus, clock: Clock, counts: Metrics, limits: Limits) -> None:
        self._bus = bus
        self._clock = clock
        self._counts = counts
        self._limits = limits

    async def bury_record(self, message: Message, cause: str) -> None:
        """Bury a record of MEMORIES; one of nobody is only logged."""
        try:
            scope = Scope.of_subject(message.subject)
        except InvalidInput:
            return
        await self.bury("MEMORIES", SessionKey(scope.owner, scope.agent, THREAD), message, cause)

    async def bury(self, stream: str, key: SessionKey, message: Message, cause: str) -> None:
        """Store a dead letter; a repeat stores nothing."""
        letter = dead_letters.build(
            work.SERVICE, stream, message, cause, key, now=self._clock.now()
        )
        await dead_letters.bury(self._bus, self._counts, letter, message, key)
