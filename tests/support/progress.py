"""Waiting for as long as something happens, however slow the machine is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from vigil.bus.batches import last_sequence
from vigil.bus.bus import Bus

STILL_S: Final = 30.0
"""For so long nothing may be stored, before a wait is given up."""
POLL_S: Final = 1.0


@contextlib.asynccontextmanager
async def going_on(bus: Bus) -> AsyncIterator[None]:
    """Give up what is done here once nothing was stored for a while; till then, don't.

    Raises: TimeoutError.
    """
    async with asyncio.timeout(STILL_S) as bound:
        looking = asyncio.create_task(_look(bus, bound))
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)


async def _look(bus: Bus, bound: asyncio.Timeout) -> None:
    loop, layout, before = asyncio.get_running_loop(), await bus.layout(), -1
    while True:
        streams = (*layout.streams("SESSIONS"), "SYSTEM", "BOARD", "SLOTS", "MEMORIES")
        stored = sum([await last_sequence(bus, stream, STILL_S) for stream in streams])
        if stored != before:
            bound.reschedule(loop.time() + STILL_S)
        before = stored
        await asyncio.sleep(POLL_S)
