"""How far a session is behind, so that nobody piles up work without end (ARCHITECTURE 3).

Asking the log costs two round trips, so it's asked only when the answer may have changed: after
as many messages as there was room for, at most 32, and each time while there is no room.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Final

from vigil.bus.bus import Bus
from vigil.contracts import POSITION_HEADER, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from .counts import count

CHECK_EVERY: Final = 32
SESSIONS_MAX: Final = 10_000


class Backlog:
    """The sessions that were written to lately, and how much more each may take unchecked."""

    def __init__(self, bus: Bus, events_max: int) -> None:
        self._bus = bus
        self._events_max = events_max
        self._room: OrderedDict[str, int] = OrderedDict()

    async def has_room(self, session: SessionKey) -> bool:
        """Count one message for `session`; return False if it has too many unprocessed events.

        Raises:
            BusError, Unavailable: the log can't be asked.
        """
        key = session.root
        room = self._room.get(key, min(CHECK_EVERY, self._events_max))
        if room <= 0:
            behind = await self._measure(session)
            if behind > self._events_max:
                self._keep(key, 0)
                return False
            room = max(1, min(CHECK_EVERY, self._events_max - behind))
        self._keep(key, room - 1)
        return True

    def _keep(self, key: str, room: int) -> None:
        self._room[key] = room
        self._room.move_to_end(key)
        if len(self._room) > SESSIONS_MAX:
            self._room.popitem(last=False)

    async def _measure(self, session: SessionKey) -> int:
        """Return how many events wait: after the committed position, and queued in the state.

        What comes while a loop is open is folded at once, so the position alone tells nothing.
        """
        turn = await self._bus.get_last(session.stream, session.turns)
        position = 0 if turn is None else int(turn.header(POSITION_HEADER) or "0")
        queued = 0
        if turn is not None:
            with contextlib.suppress(InvalidInput):  # the cortex starts anew from the position
                queued = len(decode_turn(turn.data).state.queue)
        return queued + await count(self._bus, session.stream, session.in_all, position + 1)
