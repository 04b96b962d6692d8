"""Whether there is room for one more event: on the disk, in its session, and for its person."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from vigil.runtime import Context
from vigil.subjects import SessionKey

from ..http.problem import Problem, too_many, unavailable
from .backlog import Backlog
from .person_backlog import Outstanding

DISK_CHECK_INTERVAL_S: Final = 1.0
TOLD_SHARE: Final = 0.5
"""Of each bound, that other systems may fill: a person must still be able to speak."""
RETRY_S: Final = 2.0


class Room:
    """Asked before anything is stored."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config.gateway
        # Only the embedded broker's disk is ours; with `up --processes` it has a URL, too.
        url = context.settings.config.nats.url
        is_local = not url or urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        self._store = context.settings.broker_store
        self._is_embedded = is_local and self._store.exists()
        self._backlog = Backlog(context.bus, self._config.backlog_max)
        told_max = max(1, int(self._config.backlog_max * TOLD_SHARE))
        self._told = Backlog(context.bus, told_max)
        self._outstanding = Outstanding(context.bus, self._config.person_backlog_max)
        self._has_disk = True
        self._disk_checked_s = float("-inf")

    async def check(self, session: SessionKey, *, is_told: bool = False) -> None:
        """Count one event for `session`; `is_told`: of another system.

        Raises:
            Problem: 429 too much of it is unanswered, 503 the disk is nearly full.
            BusError, Unavailable: the log can't be asked.
        """
        self.check_disk()
        if not await (self._told if is_told else self._backlog).has_room(session):
            raise too_many("the session has too many unanswered messages; wait for them", 1.0)
        now_s, share = self._clock.monotonic(), TOLD_SHARE if is_told else 1.0
        if not await self._outstanding.has_room(session.user, now_s, share):
            raise too_many(
                f"{session.user} has too many unanswered messages in all threads together "
                "(gateway.person_backlog_max); wait for them",
                RETRY_S,
            )

    def note(self, session: SessionKey, seq: int) -> None:
        """Note an event of a person, or of another system, that was stored."""
        self._outstanding.note(session, seq)

    def check_disk(self) -> None:
        """Refuse before the disk is full: the broker would fall silent (RELIABILITY 0.8).

        Raises:
            Problem: 503, as of at most a second ago.
        """
        if self._clock.monotonic() - self._disk_checked_s >= DISK_CHECK_INTERVAL_S:
            self.measure_disk()
        elif not self._has_disk:
            raise _no_disk()

    def has_disk(self) -> bool:
        """Whether nothing is refused for want of room on the disk."""
        try:
            self.check_disk()
        except Problem:
            return False
        return True

    def impatience(self) -> Callable[[], None]:
        """Return what ends the patience with a write that failed, from now on.

        It raises a Problem, 503, if the disk is full, or if the broker was silent to a write
        before: somebody else waits for it to answer, and this one needn't as well.
        """
        was_silent = bool(self._bus.unconfirmed)

        def check() -> None:
            self.measure_disk()
            if was_silent:
                raise unavailable("the broker confirms nothing at the moment; it may be stored")

        return check

    def measure_disk(self) -> None:
        """Measure now: it may be why the broker doesn't answer. Raises: Problem, 503."""
        if not self._is_embedded:
            return
        self._disk_checked_s = self._clock.monotonic()
        free = shutil.disk_usage(self._store).free
        self._has_disk = free >= self._config.disk_free_bytes_min
        if not self._has_disk:
            raise _no_disk()


def _no_disk() -> Problem:
    return unavailable("the disk is nearly full; nothing can be stored")
