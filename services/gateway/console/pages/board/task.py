"""A task: what it is, what came of it, and where it may go."""

from __future__ import annotations

from typing import Any

from vigil.board.kinds.task import TaskDetail
from vigil.tasks.lifecycle import BY_HAND

from ...second_thoughts import Confirmation, with_undo
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    return {"task": await visit.api.get(TaskDetail, f"/api/tasks/{visit.named('id')}")}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before it goes where nobody brings it back from."""
    if visit.wanted("do") == "remove":
        return Confirmation(
            title="Remove this task?",
            text="It is removed for good, and whoever works on it ends.",
            yes="Remove it",
        )
    return await visit.ask_to_move("tasks", visit.named("id"), BY_HAND)


async def act(visit: Visit) -> str:
    """Move it, or remove it. Raises: Problem, 412: it isn't as it was shown."""
    path = f"/api/tasks/{visit.named('id')}"
    if visit.wanted("do") == "remove":
        await visit.api.send("DELETE", path, revision=visit.number("revision"))
        return "/tasks"
    undo = await visit.move("tasks", visit.named("id"))
    return with_undo(f"/tasks/{visit.named('id')}", undo)
