"""The messages in hand: taken, and neither acknowledged nor given back yet."""

from __future__ import annotations

import asyncio

import structlog

from ..bus.bus import Bus, Message
from ..errors import Unavailable

log = structlog.get_logger("vigil.worker")


class Hold:
    """What a worker has in hand.

    Args:
        every_s: how often the broker is asked for another ack wait for each, so that none comes to
            another replica while this one is at it; None: never, what takes that long comes again.
    """

    def __init__(self, bus: Bus, service: str, every_s: float | None) -> None:
        self._bus = bus
        self._service = service
        self._every_s = every_s
        self._messages: dict[str, Message] = {}
        self._has_any = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, message: Message) -> None:
        self._messages[message.token] = message
        self._has_any.set()

    def drop(self, message: Message) -> None:
        """Let go of a message that is acknowledged or given back."""
        self._messages.pop(message.token, None)

    def all(self) -> list[Message]:
        return list(self._messages.values())

    async def run(self) -> None:
        """Ask for more time for all of them, until cancelled."""
        while self._every_s is not None:
            if not self._messages:
                self._has_any.clear()  # with empty hands nothing wakes
            await self._has_any.wait()
            await asyncio.sleep(self._every_s)
            try:
                for message in self.all():
                    await self._bus.in_progress(message)
            except Unavailable as error:
                log.info("can't hold", action=f"{self._service}.hold", error=str(error))
