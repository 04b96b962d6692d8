"""The configuration followed while it changes: for what needs no restart.

The file, and those with keys, are looked at every second. One that can't be read as a configuration
changes nothing and is told. The environment overrides the file as it does at the start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import structlog

from ...errors import ConfigError
from ...fields.secrets import PROVIDERS, file_of_provider
from .. import config
from ..config import Settings

log = structlog.get_logger("vigil.config")

LOOK_EVERY_S: Final = 1.0
Stamp = tuple[int, int, int]
"""By which a changed file is known: time, size, inode."""


class FollowedSettings:
    """Has whoever follows them take each change in, once."""

    def __init__(self, settings: Settings, take: Callable[[Settings], Awaitable[None]]) -> None:
        self._home = settings.home
        self._take = take
        self._files = (
            settings.file,
            *(file_of_provider(settings.home, name) for name in PROVIDERS),
        )
        self._stamps = self._stamped()

    async def follow(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            stamps = self._stamped()
            is_being_written = stamps[0] is None and self._stamps[0] is not None
            if stamps == self._stamps or is_being_written:
                continue
            self._stamps = stamps
            await self._reread()

    def _stamped(self) -> tuple[Stamp | None, ...]:
        return tuple(map(stamp_of, self._files))

    async def _reread(self) -> None:
        try:
            read = config.load(os.environ, home=self._home)
        except (ConfigError, OSError) as error:
            log.error(
                "the configuration is not usable; what was read before holds",
                action="config.refused",
                file=str(self._files[0]),
                error=str(error),
            )
            return
        log.info("configuration read", action="config.read")
        await self._take(read)


def stamp_of(file: Path) -> Stamp | None:
    """Return what tells a file's versions apart; None: there is none just now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
