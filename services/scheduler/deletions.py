"""Deleting conversations that a person deleted: only the active scheduler does.

A failure is tried again, and a term that ends goes on in the next: the mark stays open until all of
it is gone. One at a time: nobody waits, as what is marked is hidden already.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.bus.bus import BusError
from vigil.erasure.sweep import QUIET_S
from vigil.erasure.thread import ThreadEraser
from vigil.errors import OutcomeUnknown, Unavailable, WrongLastSequence
from vigil.runtime import Context

from .promotion import PauseSwitch

log = structlog.get_logger("vigil.scheduler")

AGAIN_S: Final = 5.0


class ThreadDeletions:
    """Carries them out, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._context = context
        self._pause = pause

    async def run(self) -> None:
        """Delete whatever is marked, until cancelled."""
        while True:
            self._pause.threads_changed.clear()
            timeout = AGAIN_S if await self._delete() else None
            try:
                async with asyncio.timeout(timeout):
                    await self._pause.threads_changed.wait()
            except TimeoutError:
                continue

    async def _delete(self) -> bool:
        """Delete each conversation that is marked; return whether one has to be tried again."""
        has_failed = False
        for mark in self._pause.deleted_threads:
            if self._pause.is_erasing(mark.session.partition(":")[0]):
                continue
            eraser = ThreadEraser(self._context.bus, mark, self._context.clock)
            try:
                done = await eraser.run(quiet_s=QUIET_S)
            except (Unavailable, BusError, OutcomeUnknown, WrongLastSequence) as error:
                log.warning("not deleted yet", action="scheduler.thread_waits", error=str(error))
                has_failed = True
            else:
                log.info(
                    "conversation deleted", action="scheduler.thread_deleted", records=done.deleted
                )
        return has_failed
