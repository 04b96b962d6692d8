"""/api/tasks: what an agent is to work on by itself (SPEC C-8, LOOPS L-15).

A worker is begun and ended by others, who read what is written here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Query, Response
from msgspec.structs import replace

from vigil.board import goals
from vigil.board.kept import TASKS, Revision
from vigil.board.outside import RevisionView
from vigil.contracts import (
    BoardTask,
    Instant,
    TaskMaker,
    TaskPriority,
    TaskResult,
    TaskStatus,
)
from vigil.errors import InvalidInput
from vigil.subjects import PartText, Scope
from vigil.tasks import lifecycle
from vigil.tasks.check import check

from .. import preconditions
from ..callers import Caller, Shared, User, body_of, id_of
from ..http.json import Json
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from ..state.edge import Edge
from .desk import KeptDesk, owner_for

DESK: Final = KeptDesk(TASKS)
_MADE_AS: Final[tuple[TaskStatus, ...]] = ("ready", "backlog")
Id = Annotated[str, Depends(id_of("a task"))]


class TaskBody(RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId"}):
    """A new task."""

    title: str
    """One line, of at most 200 characters."""
    description: str = ""
    """All that the worker is to know, in at most 8,000 characters: it knows nothing else."""
    priority: TaskPriority = "medium"
    status: TaskStatus = "ready"
    """`ready` or `backlog`."""
    goal: str = ""
    """The goal that it serves: what its workers take counts as that one's."""
    agent_id: PartText = "vigil"
    why: str = ""


class TaskChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is."""

    status: TaskStatus | None = None
    title: str | None = None
    description: str | None = None
    priority: TaskPriority | None = None
    why: str = ""


class TaskView(Answer, frozen=True, kw_only=True):
    """A task."""

    id: str
    owner: str
    agent_id: str
    title: str
    description: str
    status: TaskStatus
    priority: TaskPriority
    created_by: TaskMaker
    session_key: str
    is_tainted: bool
    goal: str
    tries: int
    worker: str
    is_stopping: bool
    result: TaskResult | None
    created_at: Instant
    moved_at: Instant
    is_removed: bool
    revision: int
    moves: tuple[TaskStatus, ...]
    """Where a person may move it."""


class TaskRevision(RevisionView, frozen=True, kw_only=True):
    """One state that a task was in, and who made it so."""

    status: TaskStatus


class TaskDetail(TaskView, frozen=True, kw_only=True):
    """A task, and how it came to be as it is."""

    history: tuple[TaskRevision, ...]
    """The oldest first; of more than 64 the newest."""


class TaskListing(Answer, frozen=True, kw_only=True):
    """Tasks, those that moved last first."""

    tasks: tuple[TaskView, ...]


def _facts(found: Revision[BoardTask]) -> dict[str, Any]:
    task = found.entity
    same = {
        name: getattr(task, name)
        for name in BoardTask.__struct_fields__
        if name not in ("agent", "is_ordered", "row", "row_tokens")
    }
    moves = () if task.is_removed else lifecycle.moves_of(task)
    return {**same, "agent_id": task.agent, "revision": found.number, "moves": moves}


# ---------------------------------------------------------------- endpoints


async def list_tasks(
    edge: Shared,
    caller: Caller,
    status: Annotated[
        TaskStatus | None, Query(description="Only those; absent: all that haven't ended")
    ] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> Response:
    """List tasks, those that moved last first."""
    wanted = lifecycle.OPEN if status is None else (status,)
    there = await DESK.all(edge, caller, user)
    found = [one for one in there if one.entity.status in wanted and not one.entity.is_removed]
    found.sort(key=lambda one: (one.entity.moved_at, one.number), reverse=True)
    return Json(TaskListing(tasks=tuple(TaskView(**_facts(one)) for one in found[:limit])))


async def get_task(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show a task with its history; its ETag is its revision."""
    return await _shown(edge, await DESK.find(edge, caller.reach, id_))


async def make_task(
    edge: Shared, caller: Caller, wanted: Annotated[TaskBody, Depends(body_of(TaskBody))]
) -> Response:
    """Make a task; 422 beyond 200 that haven't ended."""
    if wanted.status not in _MADE_AS:
        raise InvalidInput("status", f"a new task is {' or '.join(_MADE_AS)}")
    now, owner = edge.clock.now(), owner_for(edge, caller, wanted.agent_id)
    task = check(_task(wanted, owner, edge.context.new_id().replace("-", ""), now))
    if task.goal:
        await goals.check_there(edge.bus, Scope(task.agent, owner), task.goal)
    return await _shown(edge, await DESK.create(edge, caller, task, wanted.why), 201)


async def change_task(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[TaskChange, Depends(body_of(TaskChange))],
    expected: Expected,
) -> Response:
    """Move a task, or change what it says; 412 if it was changed since it was read."""
    found = await DESK.changeable(edge, caller, id_, expected)
    is_end = wanted.status not in (None, "ready") and not _texts(wanted)
    DESK.check_leave(caller, found.entity, is_end=is_end, field="status")
    task = check(changed(found.entity, wanted, edge.clock.now()))
    return await _shown(edge, await DESK.store(edge, caller, found, task, wanted.why))


async def remove_task(edge: Shared, caller: Caller, id_: Id, expected: Expected) -> Response:
    """Remove a task that is neither ready nor worked on; its history stays."""
    found = await DESK.changeable(edge, caller, id_, expected)
    task = lifecycle.removed(found.entity)
    return await _shown(edge, await DESK.store(edge, caller, found, task, "removed"))


# ---------------------------------------------------------------- inside


def _task(wanted: TaskBody, owner: str, id_: str, now: datetime) -> BoardTask:
    return BoardTask(
        id=id_,
        owner=owner,
        agent=wanted.agent_id,
        title=wanted.title,
        description=wanted.description,
        status=wanted.status,
        priority=wanted.priority,
        goal=wanted.goal,
        is_ordered=True,
        created_at=now,
        moved_at=now,
    )


def _texts(wanted: TaskChange) -> dict[str, Any]:
    names = ("title", "description", "priority")
    return {name: text for name in names if (text := getattr(wanted, name)) is not None}


def changed(task: BoardTask, wanted: TaskChange, now: datetime) -> BoardTask:
    """Return the task as a person wants it; who makes it ready, orders it.

    Raises:
        InvalidInput: there is no such move.
    """
    task = replace(task, **_texts(wanted))
    if wanted.status is None:
        return task
    is_ordered = task.is_ordered or (wanted.status == "ready" and not task.is_tainted)
    return replace(lifecycle.moved(task, wanted.status, now), is_ordered=is_ordered)


async def _shown(edge: Edge, found: Revision[BoardTask], status: int = 200) -> Response:
    history = tuple(
        TaskRevision(status=task.status, **msgspec.structs.asdict(one))
        for task, one in await DESK.history(edge, found)
    )
    answer = TaskDetail(**_facts(found), history=history)
    return preconditions.tagged(Json(answer, status), found.number)
