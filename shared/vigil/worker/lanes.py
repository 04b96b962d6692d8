"""Turns in hand: those of one session one at a time, the oldest first; sessions independent.

A lane exists only while it has turns. When one of them can't be done now, the newer ones of its
session go back to the broker with it, so that what a session asks for is done in its order.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable

from vigil.bus.bus import Message
from vigil.worker.groups import begin

Handle = Callable[[Message], Awaitable[bool]]
"""Does what a turn asks and acknowledges it, or gives it back; returns whether it's done."""
GiveBack = Callable[[Message], Awaitable[None]]


class Lanes:
    """The lanes of all sessions that have something in hand.

    Args:
        handle: must not raise but when it's cancelled.
        group: what runs the lanes; a bug in one ends the service instead of hiding.
    """

    def __init__(
        self, handle: Handle, give_back: GiveBack, group: asyncio.TaskGroup, *, turns_max: int
    ) -> None:
        self._handle = handle
        self._give_back = give_back
        self._group = group
        self._turns_max = turns_max
        self._lanes: dict[str, list[tuple[int, int, Message]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_hand = 0
        self._numbers = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_stopping = False

    async def room(self) -> None:
        """Wait until another turn may be taken."""
        await self._has_room.wait()

    def put(self, turn: Message) -> None:
        """Queue a turn behind the older ones of its session."""
        self._in_hand += 1
        if self._in_hand >= self._turns_max:
            self._has_room.clear()
        lane = self._lanes.get(turn.subject)
        if lane is None:
            lane = self._lanes[turn.subject] = []
            task = begin(self._group, self._run(turn.subject, lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._numbers += 1  # equal sequences, of a repeat, keep their order
        heapq.heappush(lane, (turn.seq, self._numbers, turn))

    async def _run(self, subject: str, lane: list[tuple[int, int, Message]]) -> None:
        try:
            while lane and not self._is_stopping:
                turn = heapq.heappop(lane)[2]
                is_done = await self._handle(turn)
                self._done()
                if not is_done:
                    break
        finally:
            del self._lanes[subject]
            while lane:
                self._done()
                await self._give_back(heapq.heappop(lane)[2])

    def _done(self) -> None:
        self._in_hand -= 1
        if self._in_hand < self._turns_max:
            self._has_room.set()

    async def stop(self, *, grace_s: float) -> None:
        """Finish the turns that were begun, for `grace_s` seconds at most; give back the rest."""
        self._is_stopping = True
        tasks = list(self._tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
