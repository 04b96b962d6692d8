"""What recalls have shown, gathered and written down now and then (SPEC M-7).

One record for each scope and minute, not one for each recall: otherwise reading would write more
than writing. What a kill takes of it is a minute's worth of "was recalled", which only decay
knows about.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

import structlog

from vigil.clock import Clock
from vigil.contracts import MemoriesAccessed
from vigil.errors import VigilError
from vigil.memory.questions import IDS_MAX
from vigil.subjects import Scope

from ..config import Limits
from ..store.writes import Log

log = structlog.get_logger("vigil.memory")


class Accesses:
    """The memories that were shown since they were last written down."""

    def __init__(self, log_: Log, clock: Clock, new_id: Callable[[], str], limits: Limits) -> None:
        self._log = log_
        self._clock = clock
        self._new_id = new_id
        self._limits = limits
        self._shown: dict[Scope, dict[str, None]] = {}
        self._held = 0

    def add(self, scope: Scope, ids: Iterable[str]) -> None:
        """Note that these were shown; each counts once until it is written down."""
        shown = self._shown.setdefault(scope, {})
        before = len(shown)
        for id_ in ids:
            if self._held + len(shown) - before < self._limits.accesses_held_max:
                shown.setdefault(id_)
        self._held += len(shown) - before

    def forget(self, scope: Scope) -> None:
        """Write nothing down of that scope: its owner is being erased."""
        self._held -= len(self._shown.pop(scope, {}))

    async def run(self) -> None:
        """Write down what was shown, again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._limits.accesses_every_s)
            await self.write()

    async def write(self) -> None:
        """Write down what was shown; what can't be stored now stays for the next time."""
        for scope in list(self._shown):
            ids = list(self._shown.pop(scope))
            self._held -= len(ids)
            for start in range(0, len(ids), IDS_MAX):
                await self._write(scope, ids[start : start + IDS_MAX])

    async def _write(self, scope: Scope, ids: list[str]) -> None:
        record = MemoriesAccessed(
            id=self._new_id(),
            agent=scope.agent,
            owner=scope.owner,
            at=self._clock.now(),
            by="memory",
            memory_ids=tuple(ids),
        )
        try:
            await self._log.write(record)
        except VigilError as error:
            log.info("not written", action="memory.accesses", error=str(error))
            self.add(scope, ids)

    async def close(self, *, timeout_s: float) -> None:
        """Write down what is left, if that is possible in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.write()
