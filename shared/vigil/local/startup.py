"""What a start is at, and whether it still moves. Pure.

A slow machine is no failure: a start is waited for as long as anything in it changes, however long
that takes. What changes is what a service tells of itself; of one that is being loaded, and can't
tell anything yet, it is the CPU that its process took.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..observe.cpu import CPU_MIN_S
from ..observe.health import Health

STILL_S: Final = 60.0
"""So long nothing may move until a start counts as stuck."""
POLLS_MIN: Final = 100
"""So often nothing may have moved then: where looking itself is slow, everything is."""


class StartedService(msgspec.Struct, frozen=True, kw_only=True):
    """A service that is being started, as it looks at the moment."""

    pid: int = 0
    """0: it has no process, or not again yet."""
    ended: str = ""
    """Why it ended; empty: it didn't, or is started again."""
    health: Health | None = None
    """What it tells of itself; None: nothing yet."""
    cpu_s: float = 0.0
    """What its process took so far; 0: nobody can tell."""

    @property
    def is_ready(self) -> bool:
        return self.health is not None and self.health.ready

    @property
    def at(self) -> str:
        """What it is at, in words.

        >>> StartedService().at, StartedService(pid=7).at, StartedService(ended="exit code 1").at
        ('waits for its turn', 'is being loaded', 'ended (exit code 1) and is started again')
        """
        if self.health is None:
            if self.ended:
                return f"ended ({self.ended}) and is started again"
            return "is being loaded" if self.pid else "waits for its turn"
        if self.health.ready:
            return "is ready"
        told = self.health.problems or self.health.warnings
        return f"isn't ready: {'; '.join(told)}" if told else "answers, and prepares its work"


class StartProgress:
    """Follows a start.

    >>> start = StartProgress(now_s=0.0)
    >>> start.take_in({"cortex": StartedService(pid=7)}, 0.0), start.is_still(59.0)
    (True, False)
    """

    def __init__(self, now_s: float) -> None:
        self._moved_at_s = now_s
        self._polls = 0
        self._seen: dict[str, tuple[int, str, Health | None]] = {}
        self._cpu_s: dict[str, float] = {}

    def take_in(self, services: Mapping[str, StartedService], now_s: float) -> bool:
        """Take in how all look now; return whether anything moved."""
        self._polls += 1
        seen = {name: (one.pid, one.ended, one.health) for name, one in services.items()}
        has_moved = seen != self._seen
        for name, one in services.items():
            before = self._cpu_s.get(name, 0.0)
            # Whoever answers can tell; at rest it takes some CPU as well.
            if one.health is None and one.cpu_s >= before + CPU_MIN_S:
                has_moved = True
            if has_moved or one.cpu_s < before:
                self._cpu_s[name] = one.cpu_s
        if has_moved:
            self._seen = seen
            self._moved_at_s, self._polls = now_s, 0
        return has_moved

    def is_still(self, now_s: float) -> bool:
        """Whether nothing has moved for so long that nothing will."""
        return self._polls >= POLLS_MIN and now_s >= self._moved_at_s + STILL_S


def in_words(stages: Mapping[str, str]) -> str:
    """Tell what services are at.

    >>> in_words({"cortex": "is being loaded"})
    'cortex is being loaded'
    """
    return "; ".join(f"{name} {at}" for name, at in stages.items())
