"""task_create, task_update and task_list: the tasks of the person and agent (SPEC C-8, LOOPS L-16).

What makes work begin is the person's to say: a task that the agent makes waits for them, unless the
configuration lets it begin, and its words are never changed afterwards. A loop that content from
outside has a part in never lets one begin, and touches only what is marked as it is itself; what it
makes is marked, begins by the person's hand alone, and whoever reads that is swayed.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec.structs import replace

from vigil.contracts import (
    BoardChangePayload,
    BoardTask,
    TaskPriority,
    TaskResult,
    TaskStatus,
)
from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, token_of
from vigil.tasks import lifecycle
from vigil.tasks.check import DESCRIPTION_LENGTH_MAX, TITLE_LENGTH_MAX, check
from vigil.tasks.lifecycle import ReadTask

from ..core import loops
from ..core import sway as sways
from ..core.draft import Draft
from ..core.pending.tasks import shortened
from ..core.sway import Sway
from ..core.tools import calls
from ..core.tools.declaration import Answer, OwnCall, Result, tool

SHOWN_LENGTH_MAX: Final = 300
"""Characters of a description or result in a list."""
LISTED_MAX: Final = 50
ONLY_THE_PERSON: Final = "Only the person lets it begin: `vigil tasks move {id} ready`."
NOT_YOURS: Final = (
    "This exchange took in content from outside: it may change only tasks that come from such "
    "content. The person can change {id}: `vigil tasks move`, `vigil tasks change`."
)
OWN_TASK: Final = "That is the task that you work on. It ends with what you say last."

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_LENGTH_MAX)]
Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_LENGTH_MAX)]
Why = Annotated[str, msgspec.Meta(max_length=500)]


class TaskCreate(Arguments, frozen=True, kw_only=True):
    """Put a task on the board: work for later, done by a worker who knows nothing but it.

    Title: one line. Description: goal, facts, what it is to hand back. As a rule it waits until
    the person lets it begin; they are told how it ends.
    """

    title: Title
    description: Description = ""
    priority: TaskPriority = "medium"
    agent: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """Another agent of the person's, who is to do it; empty: you."""


class TaskUpdate(Arguments, frozen=True, kw_only=True):
    """Move a task of the board, or change its priority. `backlog` keeps it for later; out of
    in_progress, each move stops its worker."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    status: Literal["ready", "backlog", "done", "failed"] | None = None
    priority: TaskPriority | None = None
    result: Annotated[str, msgspec.Meta(max_length=lifecycle.RESULT_LENGTH_MAX)] | None = None
    why: Why = ""


class TaskList(Arguments, frozen=True, kw_only=True):
    """List the tasks on the board, the most urgent first: all that haven't ended, or one status."""

    status: TaskStatus | None = None


# ---------------------------------------------------------------- task_create


def _may_begin(call: OwnCall, draft: Draft, agent: str = "") -> bool:
    """Whether what this loop makes may begin without the person. Another agent may do more by
    itself than this one, so for that one only what the person ordered does."""
    is_free = not draft.policy.tasks_need_approval and calls.may_not_change(draft) is None
    is_behind = draft.loop.is_direct or draft.loop.is_ordered
    return is_free and not call.sway.is_outside and (is_behind or not agent)


def _no_room(given: TaskCreate, call: OwnCall, draft: Draft) -> str | None:
    return no_other(given.agent, draft) or calls.refusal(draft, call.use.input)


def no_other(agent: str, draft: Draft) -> str | None:
    """Return why there is no such other agent; None: there is, or none is named."""
    if agent in ("", *draft.policy.others):
        return None
    there = ", ".join(draft.policy.others) or "none"
    return f"The person has no other agent called {agent!r}; there is: {there}."


@tool(
    risk="write",
    profiles=("channel", "worker", "cron", "autonomy", "mind"),
    obstacle=_no_room,
    aims={"priority": "detail", "agent": "who"},
)
def task_create(given: TaskCreate, call: OwnCall, draft: Draft) -> Answer:
    """Make a task; whether there is room for one more is found when it's stored."""
    key, now, loop = SessionKey.parse(draft.key), draft.moment.now, draft.loop
    # The effects of a session are counted through its life, so no other task has this id.
    id_ = token_of("task", draft.key, loop.cause.id, str(draft.state.effects))
    task = BoardTask(
        id=id_,
        owner=key.user,
        agent=given.agent or key.agent,
        title=given.title,
        description=given.description,
        status="ready" if _may_begin(call, draft, given.agent) else "pending_approval",
        priority=given.priority,
        created_by="agent",
        session_key=draft.key,
        is_ordered=(loop.is_direct or loop.is_ordered) and not call.sway.is_outside,
        is_tainted=call.sway.is_outside,
        row=draft.timetable_row,
        row_tokens=0 if draft.state.start is None else draft.state.start.row_tokens,
        goal=draft.goal,
        created_at=now,
        moved_at=now,
    )
    try:
        check(task)
    except InvalidInput as error:
        return str(error), True
    return calls.ask_board(draft, call.use, BoardChangePayload(entity=task))


# ---------------------------------------------------------------- task_update


def _found(draft: Draft, id_: str) -> ReadTask | None:
    return next((one for one in draft.moment.tasks if one.task.id == id_), None)


def _obstacle(given: TaskUpdate, call: OwnCall, draft: Draft) -> str | None:
    found, start = _found(draft, given.id), draft.state.start
    if found is None:
        return f"There is no task {given.id}."
    if start is not None and found.task.worker == draft.key:
        return OWN_TASK
    if call.sway.is_outside and not sways.of(found.task).is_outside:
        return NOT_YOURS.format(id=given.id[:8])
    if (reason := calls.may_not_change(draft)) is not None:
        return f"Not changed: {reason}."
    is_marked = sways.of(found.task).is_outside
    if given.status == "ready" and (is_marked or not _may_begin(call, draft)):
        return ONLY_THE_PERSON.format(id=given.id[:8])
    return calls.refusal(draft, call.use.input)


@tool(
    risk="write",
    profiles=("channel", "worker", "cron", "autonomy", "mind"),
    obstacle=_obstacle,
    reads=("tasks",),
    aims={"id": "which", "status": "which", "priority": "which"},
)
def task_update(given: TaskUpdate, call: OwnCall, draft: Draft) -> Answer:
    """Change a task as it was read a moment ago; if somebody was faster, the model decides anew."""
    found = _found(draft, given.id)
    if found is None:
        raise AssertionError(f"{given.id} is not there")
    try:
        task = _changed(found.task, given, call, draft)
    except InvalidInput as error:
        return str(error), True
    if task == found.task:
        return "It is so already.", False
    payload = BoardChangePayload(entity=task, expect=found.revision, why=given.why)
    return calls.ask_board(draft, call.use, payload)


def _changed(task: BoardTask, given: TaskUpdate, call: OwnCall, draft: Draft) -> BoardTask:
    """Raises: InvalidInput, there is no such move."""
    now = draft.moment.now
    if given.priority is not None:
        task = replace(task, priority=given.priority)
    if given.result is not None:
        result = TaskResult(
            text=given.result, at=now, by=draft.key, is_tainted=call.sway.is_outside
        )
        task = replace(task, result=result)
    return task if given.status in (None, task.status) else lifecycle.moved(task, given.status, now)


# ---------------------------------------------------------------- task_list


@tool(risk="read", profiles=("channel", "worker", "cron", "autonomy", "mind"), reads=("tasks",))
def task_list(given: TaskList, call: OwnCall, draft: Draft) -> Result:
    """Show the tasks; what comes from outside among them has its part in the loop from then on."""
    wanted = lifecycle.OPEN if given.status is None else (given.status,)
    found = [one.task for one in draft.moment.tasks if one.task.status in wanted]
    shown = found[:LISTED_MAX]
    loops.take_in(draft, sway_of(shown))
    lines = [_line(task) for task in shown]
    if len(found) > len(shown):
        lines.append(f"{len(found) - len(shown)} more.")
    return calls.bounded("\n".join(lines) or "None.", draft.policy.result_length_max), False


def sway_of(tasks: list[BoardTask]) -> Sway:
    """Return the sway of what tasks say, and of what was said about them."""
    results = [task.result for task in tasks if task.result is not None]
    return sways.of(*tasks, *results)


def _line(task: BoardTask) -> str:
    parts = [f"{task.id} {task.status}, {task.priority}: {task.title}"]
    if task.description:
        parts.append(f"  {_short(task.description)}")
    if task.result is not None:
        parts.append(f"  Result: {_short(task.result.text)}")
    return "\n".join(parts)


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), SHOWN_LENGTH_MAX)
