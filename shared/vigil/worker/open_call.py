"""Whether a session still waits for a call, by its newest turn: nothing else is to be run."""

from __future__ import annotations

from ..bus.bus import Bus
from ..contracts import decode_turn
from ..errors import InvalidInput
from ..subjects import SessionKey
from . import turns


async def is_awaited(bus: Bus, key: SessionKey, call_id: str) -> bool:
    """Return whether the session waits for that call.

    Raises:
        Unavailable: the broker is away.
    """
    found = await bus.get_last(key.stream, key.turns)
    if found is None:
        return False
    try:
        newest = decode_turn(found.data)
    except InvalidInput:
        return True  # nobody can tell; the fold will
    return turns.is_open(newest, call_id)
