"""Goals on a board, a column for each status, to be moved; and a new one."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from vigil.board.kinds.goal import GoalListing
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.goals.lifecycle import MOVES, OF_TIMED

from ...second_thoughts import Confirmation, with_undo
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 100
ENDED_MAX: Final = 10
"""Of those that ended, in each way; those put away are shown by their status alone."""
STATUSES: Final[tuple[str, ...]] = get_args(GoalStatus)
COLUMNS: Final = tuple(one for one in STATUSES if one != "archived")


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status") or None
    ended = OF_TIMED if status is None else ()
    wanted = [(status, SHOWN_MAX), *((one, ENDED_MAX) for one in ended)]
    pages = await asyncio.gather(
        *(
            visit.api.get(GoalListing, "/api/goals", status=one, limit=count)
            for one, count in wanted
        )
    )
    found = visit.own_first(goal for page in pages for goal in page.goals)
    shown = COLUMNS if status is None else (status,)
    return {
        "is_full": len(pages[0].goals) == SHOWN_MAX,
        "columns": [(one, [goal for goal in found if goal.status == one]) for one in shown],
        "status": status or "",
        "statuses": ("", *STATUSES),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before one goes where nobody brings it back from."""
    if visit.wanted("do") != "move":
        return None
    return await visit.ask_to_move("goals", segment_of(visit.wanted("id")), MOVES)


async def act(visit: Visit) -> str:
    """Set one, or move one. Raises: Problem."""
    if visit.wanted("do") == "move":
        undo = await visit.move("goals", segment_of(visit.wanted("id")))
        return with_undo("/goals", undo)
    goal = {"description": visit.wanted("description")}
    made = await visit.api.send("POST", "/api/goals", goal)
    return f"/goals/{made['id']}"
