"""Whether what a row newly names is there: a tool that it watches (LOOPS L-3), a skill."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import TimetableRow, decode_shelf
from ..contracts.board import CronWork, watch_of
from ..errors import InvalidInput, NotFound
from ..skills import folder
from ..watching.watched import check_offered, shelf_of

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


async def check_skill(skills: Path, row: TimetableRow, before: TimetableRow | None) -> None:
    """Check the skill that a row newly names; the one that it named before may be gone.

    Args:
        skills: the folder of all.

    Raises:
        InvalidInput: there is no such skill, or it can't be used.
    """
    name = _skill_of(row)
    if not name or (before is not None and _skill_of(before) == name):
        return
    try:
        await asyncio.to_thread(folder.find, skills, name)
    except (NotFound, InvalidInput) as error:
        raise InvalidInput("skill", str(error)) from error


def _skill_of(row: TimetableRow) -> str:
    return row.work.skill if isinstance(row.work, CronWork) else ""
