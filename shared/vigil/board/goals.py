"""Goals on the board: splitting one so that all its parts find room."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..bus.bus import Bus
from ..contracts import Change
from ..contracts.board import BoardGoal
from ..goals.check import check
from ..goals.lifecycle import part_of
from ..teams import holding
from .kept import BoundReached, KeptBoard, KeptKind, Revision


async def split(
    bus: Bus,
    kind: KeptKind[BoardGoal],
    whole: BoardGoal,
    parts: Sequence[BoardGoal],
    change: Change,
    now: datetime,
) -> list[Revision[BoardGoal]]:
    """Make parts of a goal; those that are there already are returned instead.

    Args:
        kind: goals, with the bound that is configured.

    Raises:
        BoundReached: there is no room for all of them.
        InvalidInput: a part can't be kept, or the whole has ended.
        Unavailable: as `KeptBoard.create`.
    """
    parts = [check(part_of(whole, part)) for part in parts]
    board, whose = KeptBoard(bus, kind), holding(whole.owner, whole.agent)
    there = [one.entity for one in await board.all(whose)]
    known = {one.id for one in there}
    count = sum(kind.is_open(one, now) for one in there)
    wanted = sum(kind.is_open(one, now) for one in parts if one.id not in known)
    if wanted and count + wanted > kind.open_max:
        reason = f"{whole.owner} has {count} of {kind.open_max}: there is no room for {wanted}"
        raise BoundReached(kind.name, reason)
    return [await board.create(lambda _, one=part: one, whose, change, now) for part in parts]  # type: ignore[misc]
