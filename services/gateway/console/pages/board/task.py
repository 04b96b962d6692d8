"""A task: what it is, what came of it, and where it may go."""

from __future__ import annotations

from typing import Any

from ....board.tasks import TaskDetail
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    return {"task": await visit.api.get(TaskDetail, f"/api/tasks/{visit.named('id')}")}


async def act(visit: Visit) -> str:
    """Move it, or remove it. Raises: Problem, 412: it isn't as it was shown."""
    path = f"/api/tasks/{visit.named('id')}"
    if visit.wanted("do") == "remove":
        await visit.api.send("DELETE", path, revision=visit.number("revision"))
        return "/tasks"
    await visit.move(path)
    return f"/tasks/{visit.named('id')}"
