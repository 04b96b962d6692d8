"""What a request names besides what it makes: whether its owner has that on the board."""

from __future__ import annotations

import re
from typing import assert_never

from ..bus.bus import Bus
from ..contracts import Approval
from ..errors import InvalidInput
from ..subjects import Scope
from ..teams import holding
from .kept import ROWS, KeptBoard
from .kind import BoardRefusal
from .kinds.goal import GOALS
from .mirror import Board
from .outside import Named


async def check_there(bus: Bus, whose: Scope, one: Named, id_: str) -> None:
    """Check that something is there.

    Args:
        whose: the owner and agent of what is made.

    Raises:
        InvalidInput, BoardRefusal: they have none, with the field's name; or it can't be meant.
        Unavailable: nobody can tell now.
    """
    among = whose if one.is_of_agent else holding(whose.owner, whose.agent)
    match one.what:
        case "goal":
            await _check_goal(bus, among, one.field, id_)
        case "row":
            row = await KeptBoard(bus, ROWS).find([among], id_) if id_.isalnum() else None
            if row is None or row.entity.is_removed:
                raise _refused(one, "you have no such row of the timetable")
        case "approval":
            asked = await Board(bus, Approval).find([among], id_) if id_.isalnum() else None
            if asked is None:
                raise _refused(one, "you have no such request")
            if asked.fields is not None:
                raise _refused(one, "a server asked that, and it's no call")
        case _:
            assert_never(one.what)


async def _check_goal(bus: Bus, among: Scope, field: str, id_: str) -> None:
    if re.fullmatch(r"[0-9a-f]{32}", id_, re.ASCII) is None:
        raise InvalidInput(field, "must be 32 hex digits")
    if await KeptBoard(bus, GOALS).find([among], id_) is None:
        raise InvalidInput(field, f"there is no goal {id_} of the same person and agent")


def _refused(one: Named, why: str) -> BoardRefusal:
    return BoardRefusal(f"{one.field}: {why}", one.field)
