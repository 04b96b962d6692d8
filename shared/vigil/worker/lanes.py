"""Lanes: one after another within a lane, the oldest first; lanes independent, bounded in all.

A lane exists only while it has something, so memory is bounded by what is in hand. What is
delivered again comes in any order; a lane always takes the oldest that is here.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from .groups import begin

T = TypeVar("T")


class _Lane(Generic[T]):
    """What one lane has in hand."""

    __slots__ = ("runners", "size", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, int, T]] = []
        self.runners = 0
        self.size = 0


class Lanes(Generic[T]):
    """Runs `work` on items. Each lane takes its smallest `order` first.

    Args:
        group: runs the lanes; a `work` that fails ends it, so that no fault goes unnoticed.
        slots: how many items are worked on at once, in all; None: one of each lane.
        abreast: how many of one lane are.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        work: Callable[[T], Awaitable[None]],
        *,
        slots: int | None = None,
        abreast: int = 1,
    ) -> None:
        self._group: Final = group
        self._work: Final = work
        self._slots = contextlib.nullcontext() if slots is None else asyncio.Semaphore(slots)
        self._abreast = abreast
        self._lanes: dict[Hashable, _Lane[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._changed = asyncio.Event()
        self.size = 0
        """How many items wait or are worked on."""
        self.is_stopping = False

    def __len__(self) -> int:
        """Return how many lanes have something in hand."""
        return len(self._lanes)

    def put(self, key: Hashable, order: Any, item: T) -> None:
        """Queue `item`; items of equal `order` keep the order in which they came."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        self._number += 1
        heapq.heappush(lane.waiting, (order, self._number, item))
        self._count(lane, 1)
        if lane.runners < self._abreast:
            task = begin(self._group, self._run(key, lane))
            lane.runners += 1
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def size_of(self, key: Hashable) -> int:
        """Return how many items of one lane wait or are worked on."""
        lane = self._lanes.get(key)
        return 0 if lane is None else lane.size

    def has_older(self, key: Hashable, order: Any) -> bool:
        """Whether an item of a smaller `order` waits in that lane."""
        lane = self._lanes.get(key)
        return lane is not None and bool(lane.waiting) and bool(lane.waiting[0][0] < order)

    def drain(self, key: Hashable) -> list[T]:
        """Remove and return what waits in a lane, the oldest first."""
        lane = self._lanes.get(key)
        if lane is None:
            return []
        left = [item for _, _, item in sorted(lane.waiting, key=lambda entry: entry[:2])]
        lane.waiting.clear()
        self._count(lane, -len(left))
        return left

    async def below(self, size: int) -> None:
        """Wait until fewer than `size` items wait or are worked on."""
        while self.size >= size:
            self._changed.clear()
            await self._changed.wait()

    async def stop(self, *, grace_s: float) -> None:
        """Finish what was begun, for `grace_s` seconds at most; what waits is let go."""
        self.is_stopping = True
        tasks = set(self._tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, key: Hashable, lane: _Lane[T]) -> None:
        try:
            while lane.waiting and not self.is_stopping:
                # A slot for each item, not for the lane, so that a long lane starves nobody.
                async with self._slots:
                    if lane.waiting and not self.is_stopping:
                        await self._take(lane)
        finally:
            lane.runners -= 1
            if lane.runners == 0:
                del self._lanes[key]
                self._count(lane, -len(lane.waiting))

    async def _take(self, lane: _Lane[T]) -> None:
        item = heapq.heappop(lane.waiting)[2]
        try:
            await self._work(item)
        finally:
            self._count(lane, -1)

    def _count(self, lane: _Lane[T], change: int) -> None:
        lane.size += change
        self.size += change
        self._changed.set()
