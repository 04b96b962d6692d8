"""Places at work, shared among people: one who asks for many leaves room for the others.

Nobody has more than their part of the places at a time, and of those who wait each person has one
turn after the other, whoever came first and however many calls they wait with.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator


def part_of(places: int, wished: int) -> int:
    """Return how many places one person may have: never all of them, if there are two.

    >>> part_of(16, 6), part_of(4, 6), part_of(1, 6)
    (6, 3, 1)
    """
    return min(wished, max(1, places - 1))


class SharedPlaces:
    """The places.

    Args:
        places: how many there are in all.
        per_person: how many of them one person may have at a time.
    """

    def __init__(self, places: int, per_person: int) -> None:
        self._free = places
        self._per_person = per_person
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By person, in the order of their turns: who has been served goes to the end."""

    @contextlib.asynccontextmanager
    async def place(self, person: str) -> AsyncIterator[None]:
        """Wait for a place, and have it while the block runs."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(person, deque()).append(turn)
        self._serve()
        try:
            await turn
            yield
        finally:
            self._leave(person, turn)

    def _leave(self, person: str, turn: asyncio.Future[None]) -> None:
        """Give a place back, or stop waiting for one."""
        if turn.done() and not turn.cancelled():
            self._free += 1
            self._taken[person] -= 1
            if not self._taken[person]:
                del self._taken[person]
        elif waiting := self._waiting.get(person):
            with contextlib.suppress(ValueError):
                waiting.remove(turn)
            if not waiting:
                del self._waiting[person]
        self._serve()

    def _serve(self) -> None:
        """Give free places to who may have one, each person one a round."""
        while self._free:
            person = self._next()
            if person is None:
                return
            waiting = self._waiting.pop(person)
            turn = waiting.popleft()
            if waiting:
                self._waiting[person] = waiting  # behind the others
            if turn.cancelled():
                continue
            self._free -= 1
            self._taken[person] += 1
            turn.set_result(None)

    def _next(self) -> str | None:
        may = (one for one in self._waiting if self._taken[one] < self._per_person)
        return next(may, None)
