"""Files that the log names and nobody kept: whoever stored the record was killed before that.

Looked for at each start of a service that stores such records, within the day that an upload is
there. Replicas may do so at once: keeping a file twice changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from ..bus.bus import Bus, BusError
from ..errors import InvalidInput, Unavailable
from ..layout import UPLOADS_ALL
from . import store
from .store import Intent
from .subjects import FOR

log = structlog.get_logger("vigil.attachments")

AGAIN_S: Final = 5.0


class Unkept:
    """Keeps them."""

    def __init__(self, bus: Bus, is_erasing: Callable[[str], bool]) -> None:
        """`is_erasing`: whether a person is being erased; nothing of theirs is kept then."""
        self._bus = bus
        self._is_erasing = is_erasing
        self._again = asyncio.Event()
        self._again.set()

    def wake(self) -> None:
        """Look again: a file could not be kept."""
        self._again.set()

    async def run(self) -> None:
        """Look at the start, and when told to, until cancelled."""
        while True:
            await self._again.wait()
            self._again.clear()
            try:
                await self._keep()
            except (Unavailable, BusError) as error:
                log.warning("not kept yet", action="attachments.unkept", error=str(error))
                self._again.set()
                await asyncio.sleep(AGAIN_S)

    async def _keep(self) -> None:
        for subject in await self._bus.subjects("UPLOADS", UPLOADS_ALL):
            _, user, hash_, part = subject.split(".")
            if part.startswith(FOR) and not self._is_erasing(user):
                try:
                    await self._keep_one(user, hash_, subject)
                except (InvalidInput, msgspec.MsgspecError) as error:
                    log.error(
                        "note unusable",
                        action="attachments.note",
                        subject=subject,
                        error=str(error),
                    )

    async def _keep_one(self, user: str, hash_: str, subject: str) -> None:
        if await store.is_kept(self._bus, user, hash_):
            return
        noted = await self._bus.get_last("UPLOADS", subject)
        if noted is not None and await self._is_named(hash_, noted.data):
            await store.keep(self._bus, user, hash_)

    async def _is_named(self, hash_: str, noted: bytes) -> bool:
        intent = msgspec.json.decode(noted, type=Intent)
        seq = intent.after + 1
        while found := await self._bus.get_next(intent.stream, intent.subject, seq):
            if hash_.encode() in found.data:
                return True
            seq = found.seq + 1
        return False
