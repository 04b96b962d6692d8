"""`trust`: sources that a person trusts from now on (FLOW F-15)."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from vigil.words.nearest import meant

from .. import exits, options, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

app = CommandLine(cls=ListedGroup, help="Sources that you trust: list, add, remove. Default: list.")
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="hook:NAME, bus:NAME, api:USER, mcp:NAME, url:https://…, feed:https://…",
    ),
]
COLUMNS: Final = (
    Column("SOURCE", "source"),
    Column("SINCE", "at", is_instant=True),
    Column("BY", "by"),
    Column("AGENT", "agentId"),
)


@app.command("list")
def list_(agent: options.Agent = "vigil") -> Result:
    """List what you trust beyond what is configured."""
    found = options.client().trusted(agent=agent)
    return tables.listing("sources", found, COLUMNS, empty="You trust no source.")


@app.command()
def add(source: Source, agent: options.Agent = "vigil") -> Result:
    """Trust a source: what comes from exactly it is no content from outside from now on."""
    made = options.client().trust(source, agent=agent)
    return tables.done(made["meaning"], made)


@app.command()
def remove(source: Source, agent: options.Agent = "vigil") -> Result:
    """Trust a source no more: what comes from it next is content from outside again."""
    client = options.client()
    there = {one["source"]: one["id"] for one in client.trusted(agent=agent)}
    if source not in there:
        raise exits.NotReady(f"you don't trust {source!r}{meant(source, sorted(there))}")
    ended = client.distrust(there[source], agent=agent)
    return tables.done(f"Trusted no more: {source}", ended)
