"""Dead letters of the executor: stored, however long that takes, before anything goes on."""

from __future__ import annotations

import structlog

from vigil.bus.bus import Message
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import dead_letters

from . import work
from .config import Limits

log = structlog.get_logger("vigil.executor")


class Letters:
    """Where turns that no try could use are left for a person."""

    def __init__(self, context: Context, limits: Limits) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._counts = context.metrics
        self._limits = limits

    async def bury(self, key: SessionKey, turn: Message, cause: str) -> None:
        """Store a dead letter; a repeat stores nothing."""
        letter = dead_letters.build(
            work.SERVICE, key.stream, turn, cause, key, now=self._clock.now()
        )
        await dead_letters.bury(self._bus, self._counts, letter, turn, key)
