"""`health`: what isn't asked for a while because it failed, and what hangs; show it, or have it
asked again."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.words.amounts import about

from .. import options, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

app = CommandLine(
    cls=ListedGroup,
    help="What isn't asked for a while because it failed: list, reset. Default: list.",
)
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("STATE", lambda one: one["state"].replace("_", " ")),
    Column("SINCE", lambda one: one.get("opened_at") or one["changed_at"], is_instant=True),
    Column("UNTIL", "until", is_instant=True),
    Column("REASON", lambda one: tables.short(one.get("reason", ""))),
)


@app.command("list")
def list_() -> Result:
    """List what failed again and again and whether it's asked, and sessions that hang or are full;
    how long branches take."""
    found = options.client().health()
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    if found["circuits"]:
        tables.table(COLUMNS, found["circuits"])
    else:
        output.message("Nothing failed again and again.")
    for one in found["sessions"]:
        if "stuck_s" in one:
            words = f"hangs for {about(one['stuck_s'])}, and is reopened"
        else:
            words = f"fills {one['fill']:.0%} of the context window"
        output.data(output.printable(f"session {one['session_key']} {words}"))
    if branches := found["branches"]:
        output.data(
            f"branches take {branches['p50_s']:g} s, at most {branches['p95_s']:g} s of 95 %, "
            f"{branches['trend']} ({branches['count']} of them)"
        )


@app.command()
def reset(
    name: Annotated[str, typer.Argument(help="As it is listed, model:claude say.")],
) -> Result:
    """Have it asked again at once. Needs an admin token."""
    return tables.done(f"Reset {name}.", options.client().reset_circuit(name))
