"""Log lines that many sessions would write at once, as one.

A broker that dies, or a replica that was paused, loses all its sessions in the same moment, and a
thousand equal lines tell no more than one with their number.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.subjects import SessionKey

log = structlog.get_logger("vigil.cortex")

WITHIN_S: Final = 1.0


class WarningBurst:
    """One kind of warning; what comes within a second of the first is one line."""

    def __init__(self, what: str, *, action: str) -> None:
        self._what = what
        self._action = action
        self._count = 0
        self._first: dict[str, str] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: SessionKey, error: Exception) -> None:
        """Count the session in; the first one, and what happened to it, stand for all."""
        if not self._count:
            self._first = {"session": str(key), "error": str(error) or repr(error)}
            self._timer = asyncio.get_running_loop().call_later(WITHIN_S, self.write)
        self._count += 1

    def write(self) -> None:
        """Write the line now, if there is one to write."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._count:
            log.warning(
                "sessions disturbed",
                action=self._action,
                what=self._what,
                sessions=self._count,
                **self._first,
            )
            self._count = 0
