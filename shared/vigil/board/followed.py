"""What owners' boards hold, known without asking: a follower tells what has to be read again.

For what every answer is shown. A change is known some milliseconds after it is stored; if a node of
a cluster dies, within 3 s. What must be exact, as a grant, is asked of the broker each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final

import structlog

from ..bus.bus import Bus, BusError
from ..errors import Unavailable
from ..subjects import ANYBODY, Scope, board_of
from .entries import STREAM
from .kept import E, KeptBoard, KeptKind

log = structlog.get_logger("vigil.board")

KNOWN_MAX: Final = 1000
"""Owners' kinds that are held; of more, those that were asked for longest ago are read again."""
AGAIN_S: Final = 1.0


class FollowedBoard:
    """Some kinds of everybody's entities, for all sessions of a replica."""

    def __init__(self, bus: Bus, *kinds: KeptKind[Any]) -> None:
        self._bus = bus
        self._records = {kind.name: kind.record for kind in kinds}
        self._known: OrderedDict[tuple[type, Scope], tuple[Any, ...]] = OrderedDict()
        """By the record of a kind, and the owner."""
        self._heard = 0
        """Counts entries: what is read while one comes may be of before or after it."""
        self._is_followed = False

    async def all(self, kind: KeptKind[E], whose: Scope) -> tuple[E, ...]:
        """Return all of an owner's, those that changed last at the end. Raises: Unavailable."""
        place = kind.record, whose
        known = self._known.get(place)
        if known is not None:
            self._known.move_to_end(place)
            return known
        heard = self._heard
        found = tuple([one.entity for one in await KeptBoard(self._bus, kind).all(whose)])
        if self._is_followed and heard == self._heard:
            self._known[place] = found
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        return found

    async def follow(self) -> None:
        """Hear of changes; runs until it's cancelled. Without it all is read each time."""
        while True:
            try:
                await self._follow()
            except (Unavailable, BusError) as error:
                log.info("not followed", action="board.unfollowed", error=str(error))
                await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        filters = [board_of(ANYBODY, name) for name in self._records]
        start = await self._bus.newest(STREAM, filters) + 1
        follower = await self._bus.follow(STREAM, filters, start)
        try:
            self._is_followed = True
            async for message in follower:
                self._heard += 1
                _, agent, owner, name, _ = message.subject.split(".")
                self._known.pop((self._records[name], Scope(agent, owner)), None)
        finally:
            self._is_followed = False
            self._known.clear()
            await follower.close()
