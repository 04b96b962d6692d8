"""Pulling from durable consumers: the one loop there is, which outlives a broker that is away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import structlog

from ..bus.bus import Bus, Message, Puller
from ..errors import Unavailable
from ..topology import Consumer

log = structlog.get_logger("vigil.worker")

AGAIN_S: Final = 0.1
"""Pause after nobody could be asked: the connection comes back by itself."""


class ConsumerLoop:
    """One consumer, pulled from."""

    def __init__(self, puller: Puller, service: str) -> None:
        self._puller = puller
        self._service = service
        self._is_closed = False

    @property
    def interrupted(self) -> asyncio.Event:
        """Set when nobody could be asked for a while: what was stored meanwhile comes late."""
        return self._puller.interrupted

    async def run(self, take: Callable[[Message], Awaitable[None]]) -> None:
        """Take messages until cancelled or closed; then give back at once what nobody took.

        Args:
            take: what raises Unavailable of it comes again after the ack wait.
        """
        try:
            while not self._is_closed:
                try:
                    await self._next(take)
                except Unavailable as error:
                    log.warning("can't pull", action=f"{self._service}.pull", error=str(error))
                    await asyncio.sleep(AGAIN_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Give back what nobody took; harmless to repeat."""
        if not self._is_closed:
            self._is_closed = True
            await self._puller.close()

    async def _next(self, take: Callable[[Message], Awaitable[None]]) -> None:
        message = await anext(self._puller, None)
        if message is None:  # closed
            return
        await take(message)


@contextlib.asynccontextmanager
async def consuming(
    bus: Bus, service: str, *consumers: Consumer
) -> AsyncIterator[list[ConsumerLoop]]:
    """Open consumers; afterwards what nobody took is given back at once.

    Raises:
        Unavailable: the broker is away.
    """
    async with contextlib.AsyncExitStack() as stack:
        loops: list[ConsumerLoop] = []
        layout = await bus.layout()
        for consumer in (one for named in consumers for one in layout.each(named)):
            loop = ConsumerLoop(await bus.pull(consumer), service)
            stack.push_async_callback(loop.close)
            loops.append(loop)
        yield loops
