"""Removing the folders of a person who is being erased, as soon as the mark is set (SPEC X-8).

Their calls are ended first. `vigil erase` does the same in its own home, later; what it can't reach
are the executors of other machines, so each of them does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import structlog

from vigil.backup import workspaces
from vigil.settings.switches import Switches

log = structlog.get_logger("vigil.executor")


class Busy(Protocol):
    """What works in the folders."""

    async def erased(self) -> None:
        """Return when nothing is at work any more for people who are being erased."""
        ...


class Folders:
    """The folders of this replica's home that are laid out by agent and owner.

    Args:
        roots: workspaces, and what is known of calendars; need not exist.
    """

    def __init__(self, roots: Sequence[Path], busy: Sequence[Busy], switches: Switches) -> None:
        self._roots = roots
        self._busy = busy
        self._switches = switches
        self._has_changes = asyncio.Event()
        self._has_changes.set()  # a mark may be there already
        switches.on_change(self._has_changes.set)

    async def run(self) -> None:
        """Remove what is to be removed, at the start and with every new mark, until cancelled."""
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            if self._switches.is_erasing_anybody:
                for one in self._busy:
                    await one.erased()
                await self._remove()

    async def _remove(self) -> None:
        try:
            count = 0
            for root in self._roots:
                count += await asyncio.to_thread(workspaces.scrub, root, self._switches.is_erasing)
        except OSError as error:
            # `vigil erase` finds it in its own home; elsewhere the log is all there is.
            log.error("can't remove", action="executor.erase", error=str(error))
            return
        if count:
            log.info("workspaces removed", action="executor.erased", count=count)
