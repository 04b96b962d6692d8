"""`tasks`: what an agent is to work on by itself, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.contracts import TaskPriority, TaskStatus
from vigil.contracts.board.vocabulary import TASKS
from vigil.sdk.client import Client
from vigil.texts.exact import exact

from .. import completion, exits, options, output, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from . import goals

TITLE_LENGTH_MAX: Final = 60
LOOKED_AT_MAX: Final = 500
"""Of those of each status that moved last, for one that is named by the beginning of its id."""

app = CommandLine(
    cls=ListedGroup,
    help="What an agent is to work on by itself: list, show, add, change, approve, move, cancel. "
    "Default: list.",
)

Id = Annotated[str, options.id_of("a task", "vigil tasks", completion.task_ids)]
Status = Annotated[
    TaskStatus | None, typer.Option("--status", help="Only those. Default: all that haven't ended.")
]
Priority = Annotated[TaskPriority | None, typer.Option("--priority", help="Default: medium.")]
Description = Annotated[
    str | None,
    typer.Option("--description", metavar="TEXT", help="All that the worker is to know."),
]
Why = Annotated[str, typer.Option("--why", help="For its history.")]


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


COLUMNS: Final = (
    Column("ID", lambda one: one["id"][:8]),
    Column("STATUS", "status"),
    Column("PRIORITY", "priority", rank=2),
    Column("TITLE", lambda one: tables.short(one["title"], TITLE_LENGTH_MAX)),
    Column("MOVED", "moved_at", is_instant=True, rank=1),
    Column("REMARK", _remark),
)
FIELDS: Final = (
    Column("title", "title"),
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("status", lambda one: f"{one['status']}: it {TASKS[one['status']].step}"),
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
)
HISTORY: Final = (*tables.history(Column("STATUS", "status")), Column("CAUSE", "cause"))


@app.command("list")
def list_(status: Status = None) -> Result:
    """List tasks, those that moved last first: your own, or with an admin token everybody's."""
    found = options.client().tasks(status=status)
    empty = "No tasks." if status else "No open tasks."
    return tables.listing("tasks", found, COLUMNS, empty=empty)


@app.command()
def show(id_: Id) -> Result:
    """Show one: exactly what it says, what came of it, and who moved it."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    tables.fields(FIELDS, found)
    for name in ("description", "result"):
        if found.get(name):
            output.data(name)
            output.data(exact(found[name], indent=2))
    output.data("")
    tables.table(HISTORY, found["history"])


@app.command()
def add(
    title: Annotated[str, typer.Argument(help="One line.")],
    description: Description = None,
    priority: Priority = None,
    backlog: Annotated[bool, typer.Option("--backlog", help="Keep it for later.")] = False,
    goal: Annotated[str | None, typer.Option(metavar="ID", help="The goal that it serves.")] = None,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Make a task. It begins as soon as those before it have ended, unless it's for later."""
    client = options.client()
    made = client.make_task(
        title,
        description or "",
        priority=priority or "medium",
        status="backlog" if backlog else "ready",
        goal=goals.id_of(client, goal),
        agent=agent,
        why=why,
    )
    return Result(made, partial(output.data, made["id"]))


@app.command()
def change(
    id_: Id,
    title: Annotated[str | None, typer.Option("--title", help="One line.")] = None,
    description: Description = None,
    priority: Priority = None,
    why: Why = "",
) -> Result:
    """Change what a task says. A worker that has begun doesn't notice."""
    return _changed(id_, why, title=title, description=description, priority=priority)


@app.command()
def approve(id_: Id, why: Why = "") -> Result:
    """Let a task begin that the agent made."""
    return _changed(id_, why, of="pending_approval", status="ready")


@app.command()
def move(
    id_: Id,
    status: Annotated[TaskStatus, typer.Argument(help="Where to.")],
    why: Why = "",
) -> Result:
    """Move a task; out of in_progress this stops its worker."""
    return _changed(id_, why, status=status)


@app.command()
def cancel(id_: Id, why: Why = "") -> Result:
    """Put a task back among those kept for later; one that is worked on is stopped."""
    return _changed(id_, why, status="backlog")


@app.command()
def remove(id_: Id) -> Result:
    """Remove a task that isn't wanted any more; one that is ready or worked on, cancel first."""
    client = options.client()
    found = _find(client, id_)
    done = client.remove_task(found["id"], revision=found["revision"])
    return tables.done(f"Removed {done['title']!r}.", done)


def _changed(id_: str, why: str, *, of: str = "", **changes: Any) -> Result:
    """Change a task as it was read. Raises: NotReady, it isn't in the status `of`."""
    client = options.client()
    found = _find(client, id_)
    if of and found["status"] != of:
        raise exits.NotReady(f"{found['title']!r} is {found['status']}, not {of}")
    done = client.change_task(found["id"], revision=found["revision"], why=why, **changes)
    return tables.done(f"{done['title']!r} {TASKS[done['status']].step}.", done)


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the task whose id begins so. Raises: NotReady, InvalidInput."""
    statuses = (None, "done", "failed")
    ids = (
        one["id"] for status in statuses for one in client.tasks(status=status, limit=LOOKED_AT_MAX)
    )
    return client.task(prefixes.whole("task", id_, ids))
