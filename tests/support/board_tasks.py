"""Tasks of the board for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Bus
from vigil.contracts import BoardTask, Change, TaskStatus
from vigil.subjects import Scope

AT: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)


def task_of(status: TaskStatus = "ready", **changes: Any) -> BoardTask:
    """A task of Ann's."""
    return BoardTask(**{
        "id": "a" * 32, "owner": "ann", "agent": "vigil", "title": "Tidy up", "status": status,
        "is_ordered": True, "created_at": AT, "moved_at": AT, **changes,
    })  # fmt: skip


async def keep(bus: Bus, task: BoardTask) -> Revision[BoardTask]:
    """Put a task onto the board."""
    return await KeptBoard(bus, TASKS).replace(0, task, Change(by=task.owner), task.moved_at)


async def find(bus: Bus, task: BoardTask) -> Revision[BoardTask]:
    """Return a task as it is now."""
    found = await KeptBoard(bus, TASKS).find([Scope(task.agent, task.owner)], task.id)
    assert found is not None
    return found


async def history(bus: Bus, task: BoardTask) -> list[TaskStatus]:
    """Return the statuses that a task was in, one for each revision."""
    revisions = await KeptBoard(bus, TASKS).history(await find(bus, task))
    return [one.entity.status for one in revisions]
