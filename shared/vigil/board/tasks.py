"""An owner's tasks, as the board has them."""

from __future__ import annotations

from typing import Final

from ..bus.bus import Bus
from ..subjects import Scope
from ..tasks.lifecycle import OPEN, ReadTask, rank
from .kept import TASKS, KeptBoard

ENDED_MAX: Final = 20
"""Tasks that are shown besides the open ones: those that ended last."""


async def read_tasks(bus: Bus, whose: Scope) -> tuple[ReadTask, ...]:
    """Return those of an owner and agent that a loop may ask for: the open ones, in the order in
    which they are taken, and the last of those that ended, the newest first (LOOPS L-16).

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    there = await KeptBoard(bus, TASKS).all(whose)
    found = [
        ReadTask(task=one.entity, revision=one.number) for one in there if not one.entity.is_removed
    ]
    open_ = sorted((one for one in found if one.task.status in OPEN), key=lambda o: rank(o.task))
    ended = [one for one in found if one.task.status not in OPEN]
    return (*open_, *reversed(ended[-ENDED_MAX:]))
