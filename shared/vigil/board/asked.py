"""An owner's tasks, goals and habits, as the board has them: what loops decide by."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from ..bus.bus import Bus
from ..goals import lifecycle as goals
from ..goals.lifecycle import ReadGoal
from ..preferences import habits
from ..subjects import Scope
from ..tasks.lifecycle import OPEN, ReadTask, rank
from .kept import KeptBoard
from .kinds.goal import GOALS
from .kinds.preference import PREFERENCES
from .kinds.task import TASKS

ENDED_MAX: Final = 20
"""Of each kind, shown besides what is open: what ended last."""


async def read_asked(
    bus: Bus, whose: Scope, what: Collection[str], now: datetime
) -> dict[str, Any]:
    """Return what is wanted, `tasks`, `goals` or `habits`, by that name.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    found: dict[str, Any] = {}
    if "tasks" in what:
        found["tasks"] = await read_tasks(bus, whose)
    if "goals" in what:
        found["goals"] = await read_goals(bus, whose)
    if "habits" in what:
        there = await KeptBoard(bus, PREFERENCES).all(whose)
        found["habits"] = habits.recent([one.entity for one in there], now)
    return found


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


async def read_goals(bus: Bus, whose: Scope) -> tuple[ReadGoal, ...]:
    """Return the goals of an owner and agent: those that are held, the more important first, and
    the last of those that ended, the newest first.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    there = await KeptBoard(bus, GOALS).all(whose)
    found = [ReadGoal(goal=one.entity, revision=one.number) for one in there]
    held = [one for one in found if one.goal.status in goals.HELD]
    ended = [one for one in found if one.goal.status not in goals.HELD]
    held.sort(key=lambda one: goals.rank(one.goal))
    return (*held, *reversed(ended[-ENDED_MAX:]))
