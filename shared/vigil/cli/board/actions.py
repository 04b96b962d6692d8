"""`actions`: what an agent did without being asked, and how you liked it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.contracts.board.action import ActionOutcome
from vigil.sdk.client import Client
from vigil.texts.exact import exact

from .. import completion, options, output, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

SHOWN_LENGTH_MAX: Final = 60
LOOKED_AT_MAX: Final = 500

app = CommandLine(
    cls=ListedGroup,
    help="What an agent did without being asked: list, show, like, dislike. Default: list.",
)

Id = Annotated[str, options.id_of("an action", "vigil actions", completion.action_ids)]
Text = Annotated[str, typer.Argument(help="What you think of it.")]


def _feedback(one: Mapping[str, Any]) -> str:
    """Write what a person said of an action.

    >>> _feedback({"feedback": {"is_good": False, "text": "ask first"}}), _feedback({})
    ('disliked: ask first', '')
    """
    said = one.get("feedback")
    if not said:
        return ""
    return ": ".join(filter(None, ("liked" if said["is_good"] else "disliked", said.get("text"))))


COLUMNS: Final = (
    Column("ID", lambda one: one["id"][:8]),
    Column("AT", "created_at", is_instant=True),
    Column("TOOL", "type"),
    Column("WHAT", lambda one: tables.short(one["description"], SHOWN_LENGTH_MAX)),
    Column("OUTCOME", "outcome"),
    Column("FEEDBACK", _feedback, rank=1),
)
FIELDS: Final = (
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("tool", "type"),
    Column("outcome", "outcome"),
    Column("session", "session_key"),
    Column("goal", "goal"),
    Column("from outside content", lambda one: "yes" if one["is_tainted"] else "no"),
    Column("feedback", _feedback),
    Column("done", "created_at", is_instant=True),
    Column("ended", "ended_at", is_instant=True),
    Column("revision", "revision"),
)


@app.command("list")
def list_(
    outcome: Annotated[ActionOutcome | None, typer.Option("--outcome", help="Only those.")] = None,
) -> Result:
    """List actions, the newest first: your own agents', or with an admin token everybody's."""
    found = options.client().actions(outcome=outcome)
    return tables.listing("actions", found, COLUMNS, empty="No actions.")


@app.command()
def show(id_: Id) -> Result:
    """Show one: exactly what was done."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    output.data(exact(found["description"], indent=2))
    tables.fields(FIELDS, found)


@app.command()
def like(id_: Id, text: Text = "") -> Result:
    """Say that an action was right."""
    return _judged(id_, text, is_good=True)


@app.command()
def dislike(id_: Id, text: Text = "") -> Result:
    """Say that an action was wrong."""
    return _judged(id_, text, is_good=False)


def _judged(id_: str, text: str, *, is_good: bool) -> Result:
    client = options.client()
    found = _find(client, id_)
    done = client.judge_action(found["id"], is_good=is_good, text=text, revision=found["revision"])
    return tables.done(f"You {_feedback(done)}", done)


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the action whose id begins so. Raises: NotReady, InvalidInput."""
    ids = (one["id"] for one in client.actions(limit=LOOKED_AT_MAX))
    return client.action(prefixes.whole("action", id_, ids))
