"""Deleting conversations that a person deleted: only the active scheduler does.

A failure is tried again, and a term that ends goes on in the next: the mark stays open until all of
it is gone. One at a time: nobody waits, as what is marked is hidden already. First a term deletes
what older versions left of conversations.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.bus.bus import BusError
from vigil.erasure.sweep import QUIET_S
from vigil.erasure.thread import ThreadEraser, sweep_left
from vigil.errors import OutcomeUnknown, Unavailable, WrongLastSequence
from vigil.marks import thread_mark
from vigil.runtime import Context

from .promotion import PauseSwitch

log = structlog.get_logger("vigil.scheduler")

AGAIN_S: Final = 5.0
FAILURES: Final = (Unavailable, BusError, OutcomeUnknown, WrongLastSequence)


class ThreadDeletions:
    """Carries them out, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._context = context
        self._pause = pause

    async def run(self) -> None:
        """Delete whatever is marked, until cancelled."""
        is_swept = False
        while True:
            self._pause.threads_changed.clear()
            is_swept = is_swept or await self._sweep_left()
            timeout = AGAIN_S if await self._delete() or not is_swept else None
            try:
                async with asyncio.timeout(timeout):
                    await self._pause.threads_changed.wait()
            except TimeoutError:
                continue

    async def _sweep_left(self) -> bool:
        """Delete what older versions left of conversations; return whether nothing is left."""
        try:
            for mark in await thread_mark.swept_in_part(self._context.bus):
                if self._pause.is_erasing(mark.session.partition(":")[0]):
                    continue
                count = await sweep_left(self._context.bus, mark)
                log.info("left before", action="scheduler.thread_deleted", records={"BOARD": count})
        except FAILURES as error:
            log.warning("not deleted yet", action="scheduler.thread_waits", error=str(error))
            return False
        return True

    async def _delete(self) -> bool:
        """Delete each conversation that is marked; return whether one has to be tried again."""
        has_failed = False
        for mark in self._pause.deleted_threads:
            if self._pause.is_erasing(mark.session.partition(":")[0]):
                continue
            eraser = ThreadEraser(self._context.bus, mark, self._context.clock)
            try:
                done = await eraser.run(quiet_s=QUIET_S)
            except FAILURES as error:
                log.warning("not deleted yet", action="scheduler.thread_waits", error=str(error))
                has_failed = True
            else:
                log.info(
                    "conversation deleted", action="scheduler.thread_deleted", records=done.deleted
                )
        return has_failed
