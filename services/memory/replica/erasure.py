"""Leaving nothing of a person in what this replica makes of the log (SPEC X-8).

Whoever erases has deleted the person's records from MEMORIES, and asks every replica, again and
again, until each says that there is nothing left. A memory of the person's own is removed from the
database and from the vectors. One that a team shares holds what others said, too, and what was
folded of all of it: if a record that it was made of is missing in the log, all is made anew.

The question alone can't make a replica forget anybody: who is removed is marked as being erased
(:mod:`vigil.marks.erasure`), and has no memory in the log any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import Final

import structlog

from vigil.bus.bus import Bus
from vigil.marks import erasure
from vigil.memory.questions import Erased, Rebuild
from vigil.subjects import Scope
from vigil.teams import TEAM

from ..store.writes import STREAM, Log
from ..upkeep.accesses import Accesses
from .rebuild import Replica

log = structlog.get_logger("vigil.memory")

MAKING: Final = ("save", "merge")
"""Operations whose records make memories."""
PAGE: Final = 1000
FRESH_WAIT_S: Final = 2.0
POLL_S: Final = 0.02


class Erasing:
    """Erases in one replica, one person at a time."""

    def __init__(
        self,
        bus: Bus,
        replica: Replica,
        written: Log,
        accesses: Accesses,
        *,
        instance: str,
        is_erasing: Callable[[str], bool],
    ) -> None:
        self._bus = bus
        self._replica = replica
        self._log = written
        self._accesses = accesses
        self._instance = instance
        self._is_erasing = is_erasing
        self._erased: set[Scope] = set()
        """What was removed here: looked for in the vectors once more, whatever the database has."""
        self._one = asyncio.Lock()

    async def erase(self, hash_: str) -> Erased:
        """Remove what there is of a person; tell whether there was nothing left to remove.

        Raises:
            Unavailable: the broker or the vectors don't answer, or the log is still being read.
        """
        async with self._one:
            left = await self._left(hash_)
        log.info("erasing", action="memory.erase", left=left)
        return Erased(instance=self._instance, is_done=not left, left=left)

    async def _left(self, hash_: str) -> str:
        if busy := await self._busy():
            return busy
        if await self._is_logged(hash_):
            return "it is still in the log"
        if await self._remove(hash_):
            return "it was removed just now, and is looked for once more"
        if await self._is_stale():
            self._replica.rebuild(Rebuild())
            return "what it holds has to be made anew"
        return ""

    async def _busy(self) -> str:
        """Return what may still bring back what would be removed now; empty: nothing."""
        replica = self._replica
        await replica.fresh()
        newest = await self._log.newest()
        if not await replica.projector.at_least(newest, timeout_s=FRESH_WAIT_S):
            return "the database lags behind the log"
        if replica.rebuilding is not None:
            return "what it holds is being made anew"
        if not await self._has_vectors(replica.store.position):
            return "vectors are being made"
        return ""

    async def _has_vectors(self, position: int) -> bool:
        """Wait until whoever makes vectors has nothing in hand that is older than `position`.

        One that waits for the embedder or the index has nothing in hand, and begins anew after it.
        """
        vectorizer = self._replica.vectorizer
        deadline = time.monotonic() + FRESH_WAIT_S
        while vectorizer.position < position and not vectorizer.problem:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _is_logged(self, hash_: str) -> bool:
        """Whether the log still has a memory of the person's own."""
        return any(
            [
                await self._bus.get_last(STREAM, scope.record(op))
                for scope in await self._theirs(hash_)
                for op in MAKING
            ]
        )

    async def _theirs(self, hash_: str) -> list[Scope]:
        """Return their memories, as far as the database has them."""
        async with self._replica.reading():
            scopes = await self._replica.store.scopes()
        return [scope for scope in scopes if self._is_theirs(scope, hash_)]

    async def _remove(self, hash_: str) -> bool:
        """Remove the person's own memories; return whether there were any."""
        index, there = self._replica.index, await self._theirs(hash_)
        again = [scope for scope in self._erased if self._is_theirs(scope, hash_)]
        found = bool(there)
        for scope in {*there, *again}:
            self._accesses.forget(scope)
            # The vectors first: the database knows whose there may be.
            if await index.count(scope):
                found = True
                await index.drop(scope)
        for scope in there:
            async with self._replica.reading():
                await self._replica.store.erase(scope)
                self._replica.recaller.forget(scope)
            self._erased.add(scope)
        return found

    def _is_theirs(self, scope: Scope, hash_: str) -> bool:
        return erasure.hash_of(scope.owner) == hash_ and self._is_erasing(scope.owner)

    async def _is_stale(self) -> bool:
        """Whether a memory that is shared was made of records that the log has no more."""
        async with self._replica.reading():
            scopes = await self._replica.store.scopes()
        for scope in scopes:
            if scope.owner == TEAM and await self._made_of(scope) - await self._logged(scope):
                return True
        return False

    async def _made_of(self, scope: Scope) -> set[int]:
        """Return the sequences of the records that made the memories of a scope."""

        def numbers(db: sqlite3.Connection, number: int) -> set[int]:
            rows = db.execute("SELECT num FROM memories WHERE scope = ?", (number,))
            return {row[0] for row in rows}

        async with self._replica.reading():
            store = self._replica.store
            place = await store.place(scope)
            if place is None:
                return set()
            return await store.read(lambda db: numbers(db, place.number))

    async def _logged(self, scope: Scope) -> set[int]:
        filters = [scope.record(op) for op in MAKING]
        found: set[int] = set()
        start, has_more = 1, True
        while has_more:
            page, has_more = await self._bus.page(STREAM, filters, start, limit=PAGE)
            found |= {message.seq for message in page}
            start = page[-1].seq + 1 if page else start
            has_more = has_more and bool(page)
        return found
