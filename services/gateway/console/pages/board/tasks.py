"""Tasks, by where they are, and a new one."""

from __future__ import annotations

from typing import Any, Final, get_args

from vigil.contracts import TaskPriority, TaskStatus

from ....board.tasks import TaskListing
from ...visit import Visit

SHOWN_MAX: Final = 100
_ORDER: Final = get_args(TaskStatus)


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status") or None
    found = await visit.api.get(TaskListing, "/api/tasks", status=status, limit=SHOWN_MAX)
    groups = [(one, [task for task in found.tasks if task.status == one]) for one in _ORDER]
    return {
        "is_full": len(found.tasks) == SHOWN_MAX,
        "groups": [(name, tasks) for name, tasks in groups if tasks],
        "status": status or "",
        "statuses": ("", *_ORDER),
        "priorities": get_args(TaskPriority),
    }


async def act(visit: Visit) -> str:
    """Make one. Raises: Problem."""
    names = ("title", "description", "priority")
    made = await visit.api.send("POST", "/api/tasks", {name: visit.wanted(name) for name in names})
    return f"/tasks/{made['id']}"
