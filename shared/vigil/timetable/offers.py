"""Whether what a row newly watches is offered, by what the executor publishes (LOOPS L-3)."""

from __future__ import annotations

from typing import Final

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import TimetableRow, decode_shelf
from ..contracts.board import watch_of
from .watched import check_offered, shelf_of

BUCKET: Final = "TOOLS"


async def check_watch(bus: Bus, row: TimetableRow, before: TimetableRow | None) -> None:
    """Check what a row newly watches; what it watched before may be gone.

    Raises:
        InvalidInput: no tool of that name is offered, or it may do more than look.
        Unavailable: nobody can tell now.
    """
    watch = watch_of(row.work)
    name = shelf_of(watch)
    if not name or (before is not None and watch_of(before.work) == watch):
        return
    entry = await KeyValue(bus, BUCKET).get(name)
    check_offered(watch, None if entry is None else decode_shelf(entry.value))
