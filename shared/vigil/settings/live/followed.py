"""The configuration followed while it changes: for what needs no restart.

The file, and those with keys, are looked at every second, and read once nobody writes them: half of
a file may be a configuration, too. One that can't be read as one changes nothing and is told; one
that somebody can't take in is told, and taken in again. The environment overrides the file as it
does at the start.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from typing import Final

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
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(until_next(POLL_S, loop.time()))
            stamps = self._stamped()
            is_away = stamps.config is None and self._stamps.config is not None
            if stamps == self._stamps or is_away:
                continue
            if stamps == self._failed:
                if loop.time() < self._again_at:
                    continue
            else:
                await asyncio.sleep(POLL_S * (SETTLED_FOR + self._apart))
            if self._stamped() == stamps:
                await self._take_in(stamps)

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
