"""Tasks on a board, a column for each status, to be moved; and a new one."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from vigil.board.kinds.task import TaskListing
from vigil.contracts import TaskPriority, TaskStatus
from vigil.tasks.lifecycle import BY_HAND, OPEN

from ...second_thoughts import Confirmation, with_undo
from ...shapes.lists.leaf import leaves_of
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 25
"""How many of those that go on are shown, in each way."""
ENDED_MAX: Final = 10
"""Of those that ended, in each way."""
PAGE_MAX: Final = 50
"""How many of one status its own page shows."""
READ_MAX: Final = 500
"""How many can be asked for at once."""
STATUSES: Final[tuple[str, ...]] = get_args(TaskStatus)


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status", "")
    sizes = {one: SHOWN_MAX if one in OPEN else ENDED_MAX for one in STATUSES}
    leaves = leaves_of(visit.query, sizes, PAGE_MAX)
    found = await asyncio.gather(
        *(
            visit.api.get(TaskListing, "/api/tasks", status=one, limit=leaf.asked(READ_MAX))
            for one, leaf in leaves.items()
        )
    )
    listed = zip(leaves.items(), found, strict=True)
    return {
        "columns": [
            (one, leaf.part(page.tasks if status else visit.own_first(page.tasks), READ_MAX))
            for (one, leaf), page in listed
        ],
        "status": status,
        "statuses": ("", *STATUSES),
        "priorities": get_args(TaskPriority),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before one goes where nobody brings it back from."""
    if visit.wanted("do") != "move":
        return None
    return await visit.ask_to_move("tasks", segment_of(visit.wanted("id")), BY_HAND)


async def act(visit: Visit) -> str:
    """Make one, or move one. Raises: Problem."""
    if visit.wanted("do") == "move":
        undo = await visit.move("tasks", segment_of(visit.wanted("id")))
        return with_undo("/tasks", undo)
    names = ("title", "description", "priority")
    made = await visit.api.send("POST", "/api/tasks", {name: visit.wanted(name) for name in names})
    return f"/tasks/{made['id']}"
