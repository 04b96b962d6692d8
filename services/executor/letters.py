"""Dead letters of the executor: stored, however long that takes, before anything goes on."""

from __future__ import annotations

import structlog

from vigil.bus.bus import Message
from vigil.observe import metrics
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import dead_letters
from vigil.worker.patience import ANY, Patience

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
        await Patience("executor.bury", self._limits.again, errors=ANY).run(
            lambda: dead_letters.publish(self._bus, letter, turn, key)
        )
        self._counts.count(metrics.DEAD_LETTERS)
        log.warning(
            "dead letter", action="executor.dead", subject=turn.subject, seq=turn.seq, cause=cause
        )
