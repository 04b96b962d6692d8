"""The configuration followed while it changes: for what needs no restart.

The file, and those with keys, are looked at every second, once for all of a process who follow
them, and read once nobody writes them: half of a file may be a configuration, too. One that can't
be read as one changes nothing and is told; one that somebody can't take in is told, and taken in
again. The environment overrides the file as it does at the start.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from ...backoff import Backoff
from ...clock import until_next
from ...errors import ConfigError
from .. import config
from ..config import Settings
from .stamps import Stamps, stamps_of

log = structlog.get_logger("vigil.config")

POLL_S: Final = 1.0
SETTLED_FOR: Final = 0.2
"""For how much of that a file has to be as it is before it's read."""
GOLDEN: Final = 0.618
"""All look at one moment, and read what they find spread over the rest of the second: whoever
begins anew by it is busy for a while. Multiples of the golden ratio lie apart, however many."""
AGAIN: Final = Backoff(1.0, 60.0)
"""When what couldn't be taken in is taken in again: the broker may be away, a fault be mended."""
_places = itertools.count()


class _Looks:
    """Looks at the files of a home for all who follow them in one event loop: six services that
    each looked by themselves took a third of what their process needs at rest."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._waiting: list[tuple[Callable[[Stamps], bool], asyncio.Future[Stamps]]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def until(self, is_due: Callable[[Stamps], bool]) -> Stamps:
        """Return the stamps of the first look, beginning with the next, of which that is so."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Stamps] = loop.create_future()
        self._waiting.append((is_due, found))
        self._arm(loop)
        return await found

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + until_next(POLL_S, loop.time())
        if self._timer is None or due_s < self._timer.when():
            self._disarm()
            self._timer = loop.call_at(due_s, self._look, loop)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._waiting = [one for one in self._waiting if not one[1].done()]
        if not self._waiting:
            return  # nobody follows any more, and nothing wakes
        try:
            stamps = stamps_of(self._home)
            for is_due, found in self._waiting:
                if is_due(stamps):
                    found.set_result(stamps)
        finally:  # whatever comes, it's looked again
            self._arm(loop)


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Looks]] = WeakKeyDictionary()


def _looks_at(home: Path) -> _Looks:
    of_loop = _looks.setdefault(asyncio.get_running_loop(), {})
    return of_loop.setdefault(home, _Looks(home))


class FollowedSettings:
    """Has whoever follows them take each change in, once."""

    def __init__(self, settings: Settings, take: Callable[[Settings], Awaitable[None]]) -> None:
        self._home = settings.home
        self._take = take
        self._apart = next(_places) * GOLDEN % 1 * (1 - SETTLED_FOR)
        # Since it was read; what came before this was made came in between.
        self._stamps = read_as(settings) or self._stamped()
        self.unusable = ""
        """Why the file as it is now isn't read; empty: it was."""
        self._failed: Stamps | None = None
        """With which it was read and couldn't be taken in."""
        self._failures = 0
        self._again_at = 0.0

    async def follow(self) -> None:
        """Look until cancelled."""
        looks = _looks_at(self._home)
        while True:
            stamps = await looks.until(self._is_due)
            if stamps != self._failed:
                await asyncio.sleep(POLL_S * (SETTLED_FOR + self._apart))
            if self._stamped() == stamps:
                await self._take_in(stamps)

    def _is_due(self, stamps: Stamps) -> bool:
        """Whether files are to be read that look like that."""
        is_away = stamps.config is None and self._stamps.config is not None
        if stamps == self._stamps or is_away:
            return False
        return stamps != self._failed or asyncio.get_running_loop().time() >= self._again_at

    def _stamped(self) -> Stamps:
        return stamps_of(self._home)

    async def _take_in(self, stamps: Stamps) -> None:
        try:
            if await self._reread(stamps):
                self._stamps, self._failed, self._failures = stamps, None, 0
        except Exception as error:  # a fault of ours, too: whoever follows goes on
            self._failures = self._failures + 1 if stamps == self._failed else 1
            self._failed, wait_s = stamps, AGAIN.after(self._failures)
            self._again_at = asyncio.get_running_loop().time() + wait_s
            log.error(
                "the configuration can't be taken in",
                action="config.left",
                error=repr(error),
                again_s=wait_s,
            )

    async def _reread(self, stamps: Stamps) -> bool:
        """Read it, and have it taken in; return whether that is over with."""
        try:
            read = config.load(os.environ, home=self._home)
        except (ConfigError, OSError) as error:
            log.error(
                "the configuration is not usable; what was read before holds",
                action="config.refused",
                file=str(self._home / "vigil.toml"),
                error=str(error),
            )
            told = str(error).replace("\n", "; ")
            self.unusable = f"the configuration isn't taken in as it is now: {told}"
            return True
        if self._stamped() != stamps:
            return False  # written once more meanwhile: the next look reads it
        self.unusable = ""
        log.info("configuration read", action="config.read")
        await self._take(read)
        return True


def read_as(settings: Settings) -> Stamps | None:
    """Return the stamps with which settings were read; None: not from the files of their home."""
    stamps = settings.stamps
    return stamps if stamps is not None and stamps.home == settings.home else None
