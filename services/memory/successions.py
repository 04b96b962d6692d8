"""Has what was saved stand for what says the same, and for how it was before, as it is saved.

Who saves what has a key in common with something waits for it, so that a search right after shows
one of them. What has none costs a look at the keys, in the store and of what was saved lately and
isn't there yet. Saves at once share a look: the first plans for all that came meanwhile. What can't
be planned now is left to the next pass, which finds it as well (`upkeep.likeness`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from vigil.clock import Clock
from vigil.contracts import MemoryRecord, MemorySaved
from vigil.errors import Unavailable
from vigil.subjects import Scope

from .replica.rebuild import Replica
from .rules import sameness
from .rules.sameness import Supersession
from .upkeep.passes import record_of

Planned = asyncio.Future[Sequence[Supersession]]
LATELY_MAX: Final = 20_000
"""Keys that are remembered of what this replica saved; the store has the others long since."""


class _Saved(NamedTuple):
    """A memory that waits for a look."""

    scope: Scope
    id: str
    keys: tuple[str, ...]
    is_met: bool
    """Whether something saved lately has one of its keys."""
    planned: Planned


class Successions:
    """Looks for one replica."""

    def __init__(
        self,
        replica: Replica,
        append: Callable[[Scope, MemoryRecord], Awaitable[int]],
        clock: Clock,
    ) -> None:
        self._replica = replica
        self._append = append
        self._clock = clock
        self._lock = asyncio.Lock()
        self._waiting: list[_Saved] = []
        self._lately: dict[tuple[Scope, str], None] = {}

    async def follow(self, scope: Scope, record: MemorySaved) -> None:
        """Write down what a saved memory stands for. Raises: Unavailable; the next pass does it."""
        memory = record.memory
        keys = sameness.keys(memory.content, memory.type, scope.owner)
        if not keys:
            return
        planned: Planned = asyncio.get_running_loop().create_future()
        is_met = self._note(scope, keys)
        self._waiting.append(_Saved(scope, memory.id, keys, is_met, planned))
        async with self._lock:
            if not planned.done():
                await self._plan()
        for one in planned.result():
            await self._append(scope, record_of(scope, one, record.by, self._clock.now()))

    def forget(self) -> None:
        """Keep nothing in memory of what was saved: somebody is being erased."""
        self._lately.clear()

    def _note(self, scope: Scope, keys: tuple[str, ...]) -> bool:
        """Remember keys; return whether one of them was there."""
        is_met = any((scope, key) in self._lately for key in keys)
        self._lately |= {(scope, key): None for key in keys}
        while len(self._lately) > LATELY_MAX:
            del self._lately[next(iter(self._lately))]
        return is_met

    async def _plan(self) -> None:
        """Plan for all that wait; who was passed over by an error gets nothing to write."""
        waiting, self._waiting = self._waiting, []
        try:
            await self._plan_for(waiting)
        except Unavailable:
            return
        finally:
            for one in waiting:
                if not one.planned.done():
                    one.planned.set_result(())

    async def _plan_for(self, waiting: Sequence[_Saved]) -> None:
        async with self._replica.reading():
            keys = [(one.scope, one.id, one.keys) for one in waiting]
            known = await self._replica.store.meet(keys)
        met = [one for one, is_known in zip(waiting, known, strict=True) if is_known or one.is_met]
        if not met:
            return
        await self._replica.fresh()
        async with self._replica.reading():
            asked = [(one.scope, one.id) for one in met]
            found = await self._replica.store.successions(asked, self._clock.now())
        for one, its in zip(met, found, strict=True):
            if not one.planned.done():
                one.planned.set_result(its)
