"""One lane per session: its turns one at a time, the oldest first; sessions independent.

A lane exists only while it has turns, so memory is bounded by the turns in hand. The broker
delivers again in any order; a lane always takes the oldest that is here, and a turn that waits
for a send of an older one steps back when that one arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from enum import Enum
from heapq import heappop, heappush

from vigil.bus.bus import Message
from vigil.worker.groups import begin


class Fate(Enum):
    """What became of a turn."""

    FINISHED = "finished"
    """Acknowledged."""
    OVERTAKEN = "overtaken"
    """An older turn of the session arrived: that one first."""
    GIVEN_BACK = "given back"
    """To come again later. So must the newer ones of the session, which are said after it."""


class Lane:
    """The turns of one session that are in hand."""

    __slots__ = ("_lanes", "_turns", "task")

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._turns: list[tuple[int, int, Message]] = []
        self.task: asyncio.Task[None] | None = None

    @property
    def is_stopping(self) -> bool:
        return self._lanes.is_stopping

    def has_older(self, turn: Message) -> bool:
        """Tell whether a turn stored before this one is waiting."""
        return bool(self._turns) and self._turns[0][0] < turn.seq

    def put(self, turn: Message) -> None:
        heappush(self._turns, (turn.seq, self._lanes.next_number(), turn))

    def take(self) -> Message | None:
        """Remove and return the oldest, or None."""
        return heappop(self._turns)[2] if self._turns else None


Handle = Callable[[Message, Lane], Awaitable[Fate]]
GiveBack = Callable[[Message], Awaitable[None]]


class Lanes:
    """The lanes of all sessions that have something in hand.

    Args:
        handle: acknowledges or gives back one turn, unless it's overtaken; must not raise.
        give_back: hands a turn back to the broker.
        group: what runs the lanes; a bug in one ends the service instead of hiding.
    """

    def __init__(
        self, handle: Handle, give_back: GiveBack, group: asyncio.TaskGroup, *, turns_max: int
    ) -> None:
        self._handle = handle
        self._give_back = give_back
        self._group = group
        self._turns_max = turns_max
        self._lanes: dict[str, Lane] = {}
        self._in_hand = 0
        self._numbers = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._left: list[Message] = []
        self.is_stopping = False

    def __len__(self) -> int:
        """Sessions with turns in hand."""
        return len(self._lanes)

    def next_number(self) -> int:
        """Number the arrivals, so that equal sequences (a repeat) keep their order."""
        self._numbers += 1
        return self._numbers

    async def room(self) -> None:
        """Wait until another turn may be taken."""
        await self._has_room.wait()

    def put(self, turn: Message) -> None:
        """Queue a turn behind the older ones of its session."""
        self._in_hand += 1
        if self._in_hand >= self._turns_max:
            self._has_room.clear()
        lane = self._lanes.get(turn.subject)
        if lane is not None:
            lane.put(turn)
            return
        lane = self._lanes[turn.subject] = Lane(self)
        lane.put(turn)
        lane.task = begin(self._group, self._run(turn.subject, lane))

    async def _run(self, subject: str, lane: Lane) -> None:
        try:
            while not self.is_stopping and (turn := lane.take()) is not None:
                await self._step(lane, turn)
        finally:
            del self._lanes[subject]
            while (turn := lane.take()) is not None:
                self._leave(turn)

    async def _step(self, lane: Lane, turn: Message) -> None:
        try:
            fate = await self._handle(turn, lane)
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        if fate is Fate.OVERTAKEN:
            lane.put(turn)
            return
        self._done()
        if fate is Fate.GIVEN_BACK:
            while (newer := lane.take()) is not None:
                self._done()
                await self._give_back(newer)

    def _leave(self, turn: Message) -> None:
        self._done()
        self._left.append(turn)

    def _done(self) -> None:
        self._in_hand -= 1
        if self._in_hand < self._turns_max:
            self._has_room.set()

    async def stop(self, *, grace_s: float) -> list[Message]:
        """Finish the turns that were begun, for `grace_s` seconds at most.

        Returns: the turns that were not finished, still unacknowledged.
        """
        self.is_stopping = True
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            for task in late:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        return self._left
