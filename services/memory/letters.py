"""Dead letters of memory: stored, however long that takes, before anything goes on without them."""

from __future__ import annotations

from typing import Final

from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.errors import InvalidInput
from vigil.observe.metrics import Metrics
from vigil.subjects import Scope, SessionKey
from vigil.worker import dead_letters

from . import work
from .store.writes import STREAM

THREAD: Final = "_memory"
"""In the place of a thread, for what belongs to no conversation."""


class Letters:
    """Where a record that no try could use is left for a person."""

    def __init__(self, bus: Bus, clock: Clock, counts: Metrics) -> None:
        self._bus = bus
        self._clock = clock
        self._counts = counts

    async def bury_record(self, message: Message, cause: str) -> None:
        """Bury a record of MEMORIES; one of nobody is only logged."""
        try:
            scope = Scope.of_subject(message.subject)
        except InvalidInput:
            return
        key = SessionKey(scope.owner, scope.agent, THREAD)
        letter = dead_letters.build(
            work.SERVICE, STREAM, message, cause, key, now=self._clock.now()
        )
        await dead_letters.bury(self._bus, self._counts, letter, message, key)
