"""`health`: what isn't asked for a while because it failed; show it, or have it asked again."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from .. import options, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

app = CommandLine(
    cls=ListedGroup,
    help="What isn't asked for a while because it failed: list, reset. Default: list.",
)
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("STATE", lambda one: one["state"].replace("_", " ")),
    Column("SINCE", lambda one: one["opened_at"] or one["changed_at"], is_instant=True),
    Column("UNTIL", "until", is_instant=True),
    Column("REASON", lambda one: tables.short(one["reason"])),
)


@app.command("list")
def list_() -> Result:
    """List models, servers and channels that failed again and again, and whether they are asked."""
    found = options.client().health()["circuits"]
    return tables.listing("circuits", found, COLUMNS, empty="Nothing failed again and again.")


@app.command()
def reset(
    name: Annotated[str, typer.Argument(help="As it is listed, model:claude say.")],
) -> Result:
    """Have it asked again at once. Needs an admin token."""
    return tables.done(f"Reset {name}.", options.client().reset_circuit(name))
