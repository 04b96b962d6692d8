"""`goals`: what an agent pursues for you."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Annotated, Any, Final, get_args

import typer

from vigil.contracts.board.vocabulary import GOALS, GoalStatus
from vigil.sdk.client import Client
from vigil.texts.exact import exact

from .. import completion, options, output, prefixes, tables
from ..cron.arguments import facts_of
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

SHOWN_LENGTH_MAX: Final = 60
LOOKED_AT_MAX: Final = 500
TEXTS: Final = ("success_criteria", "strategy")

app = CommandLine(
    cls=ListedGroup,
    help="What an agent pursues for you: list, show, add, change, pause, resume, complete, split, "
    "archive. Default: list.",
)

Id = Annotated[str, options.id_of("a goal", "vigil goals", completion.goal_ids)]
Status = Annotated[
    GoalStatus | None, typer.Option("--status", help="Only those. Default: all that haven't ended.")
]
Priority = Annotated[int | None, typer.Option("--priority", help="1 to 5; 5 is critical.")]
Every = Annotated[
    int | None, typer.Option("--every", metavar="SECONDS", help="How often the agent checks it.")
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="INSTANT", help="Deadline, as 2026-12-24T18:00:00+01:00."),
]
Criteria = Annotated[
    str | None, typer.Option("--criteria", metavar="TEXT", help="When it counts as reached.")
]
Strategy = Annotated[
    str | None, typer.Option("--strategy", metavar="TEXT", help="How to pursue it.")
]
Parent = Annotated[str | None, typer.Option("--parent", help="The goal that it's a part of.")]
Facts = Annotated[
    list[str] | None,
    typer.Option(
        "--fact",
        metavar="NAME=SHAPE",
        help="What is told of it in a closed form, as of `vigil cron add`; or none.",
    ),
]
Why = Annotated[str, typer.Option("--why", help="For its history.")]


def _remark(one: Any) -> str:
    """Say what a person should know of a goal besides its status.

    >>> _remark({"is_tainted": True, "origin": "self"})
    'made from outside content'
    """
    if one["is_tainted"]:
        return "made from outside content"
    return {"self": "the agent's idea", "inferred": "a habit of yours"}.get(one["origin"], "")


COLUMNS: Final = (
    Column("ID", lambda one: one["id"][:8]),
    Column("STATUS", "status"),
    Column("PRIORITY", "priority", rank=2),
    Column("GOAL", lambda one: tables.short(one["description"], SHOWN_LENGTH_MAX)),
    Column("NEXT LOOK", "next_check_at", is_instant=True, rank=1),
    Column("DEADLINE", "deadline_at", is_instant=True),
    Column("REMARK", _remark),
)
FIELDS: Final = (
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("status", lambda one: f"{one['status']}: it {GOALS[one['status']].step}"),
    Column("may go to", lambda one: ", ".join(one["moves"])),
    Column("kind", "kind"),
    Column("priority", "priority"),
    Column("deadline", "deadline_at", is_instant=True),
    Column("checked every", lambda one: f"{one['check_interval_secs']} s"),
    Column("last look", "last_checked_at", is_instant=True),
    Column("next look", "next_check_at", is_instant=True),
    Column("part of", "parent"),
    Column("facts", lambda one: "; ".join(f"{k}={v}" for k, v in one["facts"].items())),
    Column("origin", lambda one: f"{one['origin']} {one['session_key']}".strip()),
    Column("remark", _remark),
    Column("made", "created_at", is_instant=True),
    Column("moved", "moved_at", is_instant=True),
    Column("revision", "revision"),
)
HISTORY: Final = (*tables.history(Column("STATUS", "status")), Column("CAUSE", "cause"))


@app.command("list")
def list_(status: Status = None) -> Result:
    """List goals, the more important first: your own, or with an admin token everybody's."""
    return tables.listing(
        "goals", options.client().goals(status=status), COLUMNS, empty="No goals."
    )


@app.command()
def show(id_: Id) -> Result:
    """Show one: exactly what it says, and who changed it."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    output.data(exact(found["description"], indent=2))
    tables.fields(FIELDS, found)
    for name in TEXTS:
        if found.get(name):
            output.data(name)
            output.data(exact(found[name], indent=2))
    output.data("")
    tables.table(HISTORY, found["history"])


@app.command()
def add(
    description: Annotated[str, typer.Argument(help="What is to be reached.")],
    priority: Priority = None,
    every: Every = None,
    until: Until = None,
    criteria: Criteria = None,
    strategy: Strategy = None,
    parent: Parent = None,
    fact: Facts = None,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Set a goal. Without a deadline it stands until you put it away."""
    client = options.client()
    made = client.make_goal(
        description,
        check_interval_secs=every,
        deadline_at=until,
        agent=agent,
        priority=priority,
        success_criteria=criteria,
        strategy=strategy,
        parent=id_of(client, parent),
        why=why,
        **facts_of(fact),
    )
    return Result(made, partial(output.data, made["id"]))


@app.command()
def change(
    id_: Id,
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="What is to be reached.")
    ] = None,
    priority: Priority = None,
    every: Every = None,
    until: Until = None,
    criteria: Criteria = None,
    strategy: Strategy = None,
    parent: Parent = None,
    fact: Facts = None,
    why: Why = "",
) -> Result:
    """Change what a goal says; --parent '' makes it a part of none."""
    client = options.client()
    above = _find(client, parent)["id"] if parent else parent
    return _changed(
        id_,
        why,
        description=description,
        priority=priority,
        check_interval_secs=every,
        deadline_at=until,
        success_criteria=criteria,
        strategy=strategy,
        parent=above,
        **facts_of(fact),
    )


@app.command()
def pause(id_: Id, why: Why = "") -> Result:
    """Pause a goal: it isn't looked at. Its deadline stands."""
    return _changed(id_, why, status="paused")


@app.command()
def resume(id_: Id, why: Why = "") -> Result:
    """Pursue a goal again, or one that the agent may not begin by itself."""
    return _changed(id_, why, status="active")


@app.command()
def complete(id_: Id, why: Why = "") -> Result:
    """Say that a goal with a deadline is reached."""
    return _changed(id_, why, status="completed")


@app.command()
def split(
    id_: Id,
    parts: Annotated[list[str], typer.Argument(help="What each part is to reach.")],
    why: Why = "",
) -> Result:
    """Split a goal into parts, which are goals of their own."""
    client = options.client()
    found = _find(client, id_)
    made = client.split_goal(found["id"], parts, why=why, revision=found["revision"])
    return Result({"goals": made}, partial(_tell_ids, made))


def _tell_ids(made: list[dict[str, Any]]) -> None:
    for one in made:
        output.data(one["id"])


@app.command()
def archive(id_: Id) -> Result:
    """Put a goal away, whatever became of it."""
    client = options.client()
    found = _find(client, id_)
    done = client.archive_goal(found["id"], revision=found["revision"])
    return tables.done("It is put away.", done)


def _changed(id_: str, why: str, **changes: Any) -> Result:
    client = options.client()
    found = _find(client, id_)
    done = client.change_goal(found["id"], revision=found["revision"], why=why, **changes)
    return tables.done(f"It {GOALS[done['status']].step}.", done)


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the goal whose id begins so. Raises: NotReady, InvalidInput."""
    there = (client.goals(status=status, limit=LOOKED_AT_MAX) for status in get_args(GoalStatus))
    ids = (one["id"] for one in chain.from_iterable(there))
    return client.goal(prefixes.whole("goal", id_, ids))


def id_of(client: Client, named: str | None) -> str | None:
    """Return the id of the goal whose id begins so; None of none. Raises: as `_find`."""
    return None if named is None else str(_find(client, named)["id"])
