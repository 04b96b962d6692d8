"""Tasks: what an agent is to work on by itself (SPEC C-8, LOOPS L-15). Pure.

A worker is begun and ended by others, who read what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from ...contracts import (
    BoardTask,
    Instant,
    TaskMaker,
    TaskPriority,
    TaskResult,
    TaskStatus,
)
from ...contracts.board.vocabulary import TASKS as WORDS
from ...errors import InvalidInput
from ...fields.bodies import Answer, MakingBody, RequestBody
from ...fields.schema import MAYBE_ID
from ...subjects import PartText, Scope
from ...tasks import lifecycle
from ...tasks.check import FORM, check
from ...texts.columns import Column, history
from ..commands import SHORT_ID, WHOSE, Command, CommandGroup, Given, Shown
from ..kind import KeptKind, Revision
from ..outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    ListOperation,
    MakeOperation,
    Named,
    Occasion,
    Paged,
    RevisionView,
)

TASKS: Final = KeptKind(BoardTask, 200, lambda one, _now: lifecycle.is_open(one))
_MADE_AS: Final[tuple[TaskStatus, ...]] = ("ready", "backlog")


# ---------------------------------------------------------------- what comes in and goes out


class TaskBody(MakingBody, frozen=True, kw_only=True):
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


class TaskListing(Paged, frozen=True, kw_only=True):
    """Tasks, those that moved last first."""

    tasks: tuple[TaskView, ...]


# ---------------------------------------------------------------- what is done


def _facts(found: Revision[BoardTask], _occasion: Occasion) -> dict[str, Any]:
    task = found.entity
    return {"moves": () if task.is_removed else lifecycle.moves_of(task)}


def _shows(task: BoardTask, status: TaskStatus | None, _occasion: Occasion) -> bool:
    wanted = lifecycle.OPEN if status is None else (status,)
    return task.status in wanted and not task.is_removed


def _made(wanted: TaskBody, whose: Scope, id_: str, occasion: Occasion) -> BoardTask:
    if wanted.status not in _MADE_AS:
        raise InvalidInput("status", f"a new task is {' or '.join(_MADE_AS)}")
    return check(
        BoardTask(
            id=id_,
            owner=whose.owner,
            agent=whose.agent,
            title=wanted.title,
            description=wanted.description,
            status=wanted.status,
            priority=wanted.priority,
            goal=wanted.goal,
            is_ordered=True,
            created_at=occasion.now,
            moved_at=occasion.now,
        )
    )


def _texts(wanted: TaskChange) -> dict[str, Any]:
    names = ("title", "description", "priority")
    return {name: text for name in names if (text := getattr(wanted, name)) is not None}


def _changed(task: BoardTask, wanted: TaskChange, occasion: Occasion) -> BoardTask:
    """Return the task as a person wants it; who makes it ready, orders it."""
    task = replace(task, **_texts(wanted))
    if wanted.status is None:
        return check(task)
    is_ordered = task.is_ordered or (wanted.status == "ready" and not task.is_tainted)
    moved = lifecycle.moved(task, wanted.status, occasion.now)
    return check(replace(moved, is_ordered=is_ordered))


# ---------------------------------------------------------------- on the command line


def _remark(one: Mapping[str, Any]) -> str:
    """Say what a person should know of a task besides its status.

    >>> _remark({"is_tainted": True, "created_by": "agent", "is_stopping": False})
    'made from outside content'
    """
    if one["is_tainted"]:
        return "made from outside content"
    if one["is_stopping"]:
        return "its worker is being stopped"
    return "the agent's idea" if one["created_by"] == "agent" else ""


def _moved(one: Shown) -> str:
    return f"{one['title']!r} {WORDS[one['status']].step}."


def _told(one: Shown) -> str:
    return f"{_moved(one)} Its id is {one['id'][:8]}."


_DESCRIPTION: Final = Given(
    "description", "All that the worker is to know.", "--description", metavar="TEXT"
)
_PRIORITY: Final = Given("priority", "Default: medium.", "--priority")
COMMANDS: Final = CommandGroup(
    help="What an agent is to work on by itself: list, show, add, change, approve, move, cancel. "
    "Default: list.",
    list_text="List tasks, those that moved last first: your own, or with an admin token "
    "everybody's.",
    empty_unchosen="No open tasks. `vigil tasks list --status done` lists what was done.",
    chosen=(None, "done", "failed"),
    columns=(
        SHORT_ID,
        Column("STATUS", "status"),
        Column("PRIORITY", "priority", rank=2),
        Column("TITLE", "title", length_max=60),
        Column("MOVED", "moved_at", is_instant=True, rank=1),
        Column("REMARK", _remark),
    ),
    show_text="Show one: exactly what it says, what came of it, and who moved it.",
    fields=(
        Column("title", "title"),
        *WHOSE,
        Column("status", lambda one: f"{one['status']}: it {WORDS[one['status']].step}"),
        Column("may go to", lambda one: ", ".join(one["moves"])),
        Column("priority", "priority"),
        Column("goal", "goal"),
        Column("made by", lambda one: f"{one['created_by']} {one['session_key']}".strip()),
        Column("remark", _remark),
        Column("made", "created_at", is_instant=True),
        Column("moved", "moved_at", is_instant=True),
        Column("tries", "tries"),
        Column("worker", "worker"),
        Column("revision", "revision"),
    ),
    texts=("description", "result"),
    parts={"history": history(Column("STATUS", "status"), has_cause=True)},
    words="title",
    commands=(
        Command(
            "add",
            "Make a task. It begins as soon as those before it have ended, unless it's for later.",
            "make",
            gives=(
                Given("title", "One line."),
                _DESCRIPTION,
                _PRIORITY,
                Given(
                    "status",
                    "Keep it for later.",
                    "--backlog",
                    kind=bool,
                    read=lambda is_later: "backlog" if is_later else "ready",
                ),
                Given(
                    "goal",
                    "The goal that it serves.",
                    "--goal",
                    metavar="ID",
                    names="goals",
                ),
            ),
            summary=_told,
            tells_id=True,
        ),
        Command(
            "change",
            "Change what a task says. A worker that has begun doesn't notice.",
            "change",
            gives=(
                Given("title", "One line.", "--title"),
                _DESCRIPTION,
                _PRIORITY,
            ),
            summary=_moved,
        ),
        Command(
            "approve",
            "Let a task begin that the agent made.",
            "change",
            always={"status": "ready"},
            only="pending_approval",
            summary=_moved,
        ),
        Command(
            "move",
            "Move a task; out of in_progress this stops its worker.",
            "change",
            gives=(Given("status", "Where to.", kind=TaskStatus),),
            summary=_moved,
        ),
        Command(
            "cancel",
            "Put a task back among those kept for later; one that is worked on is stopped.",
            "change",
            always={"status": "backlog"},
            summary=_moved,
        ),
        Command(
            "remove",
            "Remove a task that isn't wanted any more; one that is ready or worked on, "
            "cancel first.",
            "end",
            summary=lambda one: f"Removed {one['title']!r}.",
        ),
    ),
)

KIND: Final = BoardKind(
    kept=TASKS,
    called="a task",
    plural="tasks",
    view=TaskView,
    detail=TaskDetail,
    state=TaskRevision,
    facts=_facts,
    lists=ListOperation(
        text="List tasks, those that moved last first.",
        answer=TaskListing,
        by="status",
        choices=TaskStatus,
        unchosen="all that haven't ended",
        shows=_shows,
        rank=lambda found, _: (found.entity.moved_at, found.number),
        is_newest_first=True,
    ),
    makes=MakeOperation(
        text="Make a task; 422 beyond 200 that haven't ended.",
        body=TaskBody,
        make=_made,
        names=(Named("goal", "goal", is_of_agent=True),),
    ),
    changes=ChangeOperation(
        text="Move a task, or change what it says; 412 if it was changed since it was read.",
        body=TaskChange,
        change=_changed,
        is_end=lambda wanted: wanted.status not in (None, "ready") and not _texts(wanted),
        field="status",
    ),
    ends=EndOperation(
        name="remove_task",
        text="Remove a task that is neither ready nor worked on; its history stays.",
        end=lambda task, _occasion: lifecycle.removed(task),
        why="removed",
    ),
    limits={
        TaskBody: FORM | {"status": {"enum": list(_MADE_AS)}, "goal": MAYBE_ID},
        TaskChange: FORM,
    },
    examples={
        TaskBody: {
            "one to begin with": {"title": "Compare three backup tools", "priority": "high"},
            "one for later": {
                "title": "Tidy up the notes of October",
                "description": "They are in notes/2026-10; keep what is still open.",
                "status": "backlog",
            },
        },
        TaskChange: {
            "let it begin": {"status": "ready"},
            "end it": {"status": "backlog", "why": "not now"},
            "make it urgent": {"priority": "critical"},
        },
    },
    commands=COMMANDS,
)
