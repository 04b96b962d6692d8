"""Goals on a board, a column for each status, to be moved; and a new one."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from vigil.board.kinds.goal import GoalListing
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.goals.lifecycle import HELD, MOVES

from ...second_thoughts import Confirmation, with_undo
from ...shapes.lists.leaf import leaves_of
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 25
"""How many of those that go on are shown, in each way."""
ENDED_MAX: Final = 10
"""Of those that ended, in each way; those put away are shown by their status alone."""
PAGE_MAX: Final = 50
"""How many of one status its own page shows."""
READ_MAX: Final = 500
"""How many can be asked for at once."""
STATUSES: Final[tuple[str, ...]] = get_args(GoalStatus)
COLUMNS: Final = tuple(one for one in STATUSES if one != "archived")


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status", "")
    sizes = {one: SHOWN_MAX if one in HELD else ENDED_MAX for one in COLUMNS}
    leaves = leaves_of(visit.query, sizes, PAGE_MAX)
    found = await asyncio.gather(
        *(
            visit.api.get(GoalListing, "/api/goals", status=one, limit=leaf.asked(READ_MAX))
            for one, leaf in leaves.items()
        )
    )
    listed = zip(leaves.items(), found, strict=True)
    return {
        "columns": [
            (one, leaf.part(page.goals if status else visit.own_first(page.goals), READ_MAX))
            for (one, leaf), page in listed
        ],
        "status": status,
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
