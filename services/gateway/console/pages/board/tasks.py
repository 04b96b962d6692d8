"""Tasks on a board, a column for each status, to be moved; and a new one."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from vigil.board.kinds.task import TaskListing
from vigil.contracts import TaskPriority, TaskStatus
from vigil.tasks.lifecycle import BY_HAND, OPEN

from ...second_thoughts import Confirmation, with_undo
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 100
ENDED_MAX: Final = 10
"""Of those that ended, in each way."""
STATUSES: Final[tuple[str, ...]] = get_args(TaskStatus)


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status") or None
    ended = [one for one in STATUSES if one not in OPEN] if status is None else []
    wanted = [(status, SHOWN_MAX), *((one, ENDED_MAX) for one in ended)]
    pages = await asyncio.gather(
        *(
            visit.api.get(TaskListing, "/api/tasks", status=one, limit=count)
            for one, count in wanted
        )
    )
    found = visit.own_first(task for page in pages for task in page.tasks)
    shown = STATUSES if status is None else (status,)
    return {
        "is_full": len(pages[0].tasks) == SHOWN_MAX,
        "columns": [(one, [task for task in found if task.status == one]) for one in shown],
        "status": status or "",
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
