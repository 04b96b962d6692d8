"""A mark in CONFIG: the scheduler is to make the schedules again that TIMERS may lack.

After a restore TIMERS is of another moment than SESSIONS, and a schedule that a turn asked for
and the scheduler carried out may be missing. Only the scheduler writes there, so it is asked to.
The mark stays until all is done: a kill in the middle changes nothing.
"""

from __future__ import annotations

from typing import Final

from ..bus.bus import Bus
from ..bus.kv import KeyEntry, KeyValue
from ..errors import WrongLastSequence

BUCKET: Final = "CONFIG"
KEY: Final = "rearm"


async def request(bus: Bus) -> None:
    """Ask the scheduler that becomes active next."""
    await KeyValue(bus, BUCKET).put(KEY, b"{}")


async def requested(bus: Bus) -> KeyEntry | None:
    """Return the mark, if it is there."""
    return await KeyValue(bus, BUCKET).get(KEY)


async def done(bus: Bus, mark: KeyEntry) -> None:
    """Take the mark away, unless it was set anew meanwhile."""
    try:
        await KeyValue(bus, BUCKET).delete(KEY, expect=mark.revision)
    except WrongLastSequence:
        return
