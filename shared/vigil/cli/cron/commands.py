"""`cron`: what an agent does again and again, and what became of each time.

What its commands make and change of a row is said by the kind (`vigil.board.kinds.row`).
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Annotated, Final

import typer

from vigil.board.row_commands import NAME_LENGTH_MAX
from vigil.contracts.board import SlotState
from vigil.sdk.client import Client

from .. import exits, options, output, prefixes, tables, wall
from ..board import kinds
from ..tables import Column, Result
from . import links
from .slots import SLOTS

ROWS: Final = kinds.COMMANDS["rows"]
Id = Annotated[str, ROWS.argument()]
FINDINGS: Final = (
    Column("ID", lambda one: one["row"][:8]),
    Column("NAME", "name", length_max=NAME_LENGTH_MAX),
    Column("WHAT", "what"),
    Column("TEXT", lambda item: wall.told(item["text"])),
)
LOOKED_AT: Final = 500
"""A row that was removed is looked for among so many of the newest entries."""

app = kinds.GROUPS["rows"]


@app.command()
def run(id_: Id) -> Result:
    """Run a row now. What it is due for stays as it is."""
    client = options.client()
    found = ROWS.find(client, id_)
    begun = client.run_cron_row(found["id"])
    return tables.done(f"{found['name']!r} runs: {begun['session']}.", begun)


@app.command()
def doctor() -> Result:
    """Tell what is wrong: never run, late, failing, undecided, without an end. Then the exit code
    is 1."""
    found = options.client().cron_findings()
    listed = tables.listing("findings", found, FINDINGS, empty="All is well.")
    return listed._replace(end=typer.Exit(exits.FAILURE)) if found else listed


@app.command()
def export(
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How far ahead.")] = 30,
) -> Result:
    """Write when rows are due as iCalendar: vigil cron export > jobs.ics"""
    text = options.client().cron_calendar(days=days)
    return Result({"calendar": text}, partial(output.data, text.rstrip("\r\n")))


for _command in (links.link, links.links, links.unlink):
    app.command()(_command)


@app.command("history")
def history(
    id_: Annotated[
        str | None, typer.Argument(metavar="ID", help="Of a row, or its name. Default: all.")
    ] = None,
    state: Annotated[
        SlotState | None, typer.Option("--state", help="Only those, as `missed`.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="At most so many.")] = 20,
) -> Result:
    """List what became of each time that something was due, the newest first."""
    client = options.client()
    row = None if id_ is None else _row(client, id_)
    found = client.slots(row=row, state=state, limit=limit)
    if state is None:  # the ledger has a beginning beside its end, for good
        newest = {(one["row"], one["due_at"]): one for one in reversed(found)}
        found = [one for one in found if newest[one["row"], one["due_at"]] is one]
    return tables.listing("slots", found, SLOTS, empty="Nothing was due yet.")


def _row(client: Client, id_: str) -> str:
    """Return the id of a row, also of one that was removed. Raises: NotReady, InvalidInput."""
    try:
        return str(ROWS.find(client, id_)["id"])
    except exits.NotReady:
        gone = {one["row"]: {**one, "id": one["row"]} for one in client.slots(limit=LOOKED_AT)}
        if named := prefixes.named("row", id_, gone.values(), client.me):
            return named
        with contextlib.suppress(exits.NotReady):
            return prefixes.whole("row", id_, gone, names=())
        raise


_LAST: Final = ("remove", "history")
"""In the list of commands."""
app.registered_commands.sort(key=lambda one: one.name in _LAST)
