"""What is to be looked at, and when: the soonest first, each name once. Pure."""

from __future__ import annotations

import heapq
from datetime import datetime
from typing import Final

QUIET_S: Final = 60.0
"""How long the next record of a log is waited for that is read to its end: nothing is polled."""
STALE_MAX: Final = 64
"""Entries that hold no more, beside as many as there are that do."""


class RowAgenda:
    """Names and the instants at which each is looked at next.

    A name that is put again is looked at once, at the sooner of the two: what is new meanwhile
    isn't put off. Its later entry stays in the heap until that comes up, or until there are too
    many: a year may lie between.

    >>> from datetime import UTC
    >>> one, two = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
    >>> agenda = RowAgenda()
    >>> agenda.put("a", two); agenda.put("b", two); agenda.put("a", one)
    >>> agenda.next_at() == one, agenda.due(one, 9), agenda.due(two, 9), len(agenda)
    (True, ['a'], ['b'], 0)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._next: dict[str, datetime] = {}

    def __len__(self) -> int:
        return len(self._next)

    @property
    def size(self) -> int:
        """Entries that are held, those included that hold no more."""
        return len(self._heap)

    def put(self, name: str, at: datetime) -> None:
        """Have a name looked at then, or sooner if it is to be anyway."""
        if self._next.get(name, at) < at:
            return
        self._next[name] = at
        heapq.heappush(self._heap, (at, name))
        if len(self._heap) > 2 * len(self._next) + STALE_MAX:
            self._heap = [(at, name) for name, at in self._next.items()]
            heapq.heapify(self._heap)

    def forget(self, name: str) -> None:
        """Have a name looked at no more."""
        self._next.pop(name, None)

    def next_at(self) -> datetime | None:
        """Return when to look next; None: nothing is to be looked at."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def due(self, now: datetime, most: int) -> list[str]:
        """Take the names whose time has come, at most so many."""
        found: list[str] = []
        while len(found) < most:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now:
                break
            _, name = heapq.heappop(self._heap)
            del self._next[name]
            found.append(name)
        return found

    def _drop_stale(self) -> None:
        while self._heap and self._next.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
