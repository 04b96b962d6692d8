"""Repeating until the broker has confirmed it: the one loop for what may happen twice.

What is repeated names itself what makes a repeat harmless: an id that the broker compares, an
expectation, or that it looks first whether an earlier try arrived (`OutcomeUnknown`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import structlog

from ..backoff import Backoff
from ..bus.bus import BusError
from ..errors import Unavailable, VigilError

T = TypeVar("T")
log = structlog.get_logger("vigil.worker")

BACKOFF: Final = Backoff(0.05, 1.0)
AWAY: Final = (Unavailable,)
"""The broker, or who answers on it, can't be reached: what passes by itself."""
ANY: Final = (Unavailable, BusError)
"""Also what the broker refuses: for what must not be given up, whatever somebody has to mend."""


class Patience:
    """How often and after which pauses something is tried again; counts failures over all of it.

    Args:
        action: of the log line of each failure; None: none is written.
        errors: what is tried again; anything else is raised at once.
        retries_max: failures that are waited out; the next one is raised. None: no limit.
        is_over: asked after each failure; if True, it is raised.
        sleep: waits so many seconds.
        about: further fields of the log line.
    """

    def __init__(
        self,
        action: str | None,
        backoff: Backoff = BACKOFF,
        *,
        errors: tuple[type[VigilError], ...] = AWAY,
        retries_max: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        **about: Any,
    ) -> None:
        self._action = action
        self._backoff = backoff
        self._errors = errors
        self._retries_max = retries_max
        self._is_over = is_over
        self._sleep = sleep
        self._about = about
        self._failures = 0

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`, which may be repeated, until it succeeds or patience ends.

        Raises:
            VigilError: the last failure, or one that isn't tried again.
        """
        while True:
            try:
                return await work()
            except self._errors as error:
                await self.after(error)

    async def after(self, error: VigilError) -> None:
        """Wait out a failure. Raises: `error`, if patience is at its end."""
        if self._failures == self._retries_max or self._is_over():
            raise error
        self._failures += 1
        pause_s = self._backoff.after(self._failures)
        if self._action is not None:
            about = self._about | {"error": str(error), "pause_s": pause_s}
            log.warning("trying again", action=self._action, **about)
        await self._sleep(pause_s)


def after_s(seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed since now, by the loop's clock."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    return lambda: loop.time() >= end
