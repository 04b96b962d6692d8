"""Lanes: one after another within a session, concurrently across sessions, bounded in all."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from vigil.worker.groups import begin

T = TypeVar("T")


class Lanes(Generic[T]):
    """Runs `work` on items. Each lane takes its smallest `order` first.

    A failing `work` ends the task group that owns the lanes, so it can't go unnoticed.
    """

    def __init__(
        self, group: asyncio.TaskGroup, work: Callable[[T], Awaitable[None]], *, in_flight: int
    ) -> None:
        self._group: Final = group
        self._work: Final = work
        self._slots = asyncio.Semaphore(in_flight)
        self._lanes: dict[Hashable, list[tuple[Any, int, T]]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self.size = 0
        """How many items wait or are worked on."""

    def put(self, lane: Hashable, order: Any, item: T) -> None:
        """Queue `item`; items with equal `order` keep the order in which they came."""
        self._count += 1
        self.size += 1
        heap = self._lanes.get(lane)
        if heap is None:
            heap = self._lanes[lane] = []
            begin(self._group, self._run(lane, heap))
        heapq.heappush(heap, (order, self._count, item))

    async def below(self, size: int) -> None:
        """Wait until fewer than `size` items wait or are worked on."""
        while self.size >= size:
            self._changed.clear()
            await self._changed.wait()

    async def _run(self, lane: Hashable, heap: list[tuple[Any, int, T]]) -> None:
        while heap:
            # A slot for each item, not for the lane, so that a long lane starves nobody.
            async with self._slots:
                _, _, item = heapq.heappop(heap)
                await self._work(item)
            self.size -= 1
            self._changed.set()
        del self._lanes[lane]
