"""Telling the broker which turns are in hand, so that they don't come to another replica."""

from __future__ import annotations

import asyncio

import structlog

from vigil.bus.bus import Bus, Message
from vigil.errors import Unavailable

log = structlog.get_logger("vigil.executor")


class Holding:
    """The turns that this replica has."""

    def __init__(self, bus: Bus, every_s: float) -> None:
        self._bus = bus
        self._every_s = every_s
        self._turns: dict[str, Message] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, turn: Message) -> None:
        self._turns[turn.token] = turn

    def drop(self, turn: Message) -> None:
        """Say nothing of it any more: it is acknowledged or given back."""
        self._turns.pop(turn.token, None)

    async def run(self) -> None:
        """Say it for all of them, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                for turn in list(self._turns.values()):
                    await self._bus.in_progress(turn)
            except Unavailable as error:
                log.info("can't say so", action="executor.hold", error=str(error))
