"""What an owner's preferences on the board are taught, and which of them hold."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ..bus.bus import Bus
from ..contracts import Change
from ..contracts.board import BoardPreference
from ..errors import Unavailable, WrongLastSequence
from ..preferences.check import check
from ..preferences.confidence import first, taught
from ..subjects import Scope
from ..teams import holding
from .bounds import preferences_of
from .kept import KeptBoard, Revision

TRIES_MAX: Final = 20
"""Lessons of others that may come between."""


async def learn(
    bus: Bus, lesson: BoardPreference, change: Change, now: datetime, period: timedelta
) -> Revision[BoardPreference]:
    """Add a lesson to what is known of its key; return what that is then.

    A repeat of one that led to a revision is found by the cause of the change, and by that of the
    lesson: neither teaches twice.

    Args:
        lesson: of `learned_from` it has its one.
        period: without a confirmation, that takes a little of what is known.

    Raises:
        BoundReached: 500 keys are known, and this is none of them.
        InvalidInput: it can't be kept.
        Unavailable: the broker is away, or others write there all the time.
    """
    check(lesson)
    whose = Scope(lesson.agent, lesson.owner)
    board = KeptBoard(bus, preferences_of(period))
    for _ in range(TRIES_MAX):
        found = await board.find([whose], lesson.id)
        if found is None:
            entity, among = first(lesson), holding(lesson.owner, lesson.agent)
            made = await board.create(lambda _, one=entity: one, among, change, now)  # type: ignore[misc]
            if made.entity.learned_from == entity.learned_from:
                return made
            continue  # somebody else made it meanwhile
        if change.cause:
            history = await board.history(found)
            before = next((one for one in history if one.change.cause == change.cause), None)
            if before is not None:
                return before
        entity = taught(found.entity, lesson, period)
        if entity == found.entity:
            return found
        try:
            return await board.change(found, entity, change, now)
        except WrongLastSequence:
            continue
    raise Unavailable(f"{lesson.key}: others change it all the time")
