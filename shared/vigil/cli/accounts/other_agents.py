"""`vigil a2a`: other programs' agents, which speak A2A and whose skills one's own agents can call.

How each is, and what is held back of it, is told like that of MCP servers.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import typer

from vigil.local import mcp_servers
from vigil.settings import config
from vigil.subjects import check_part

from .. import completion, configured, tables
from ..admin import operator
from ..commands import mcp
from ..registry import CommandLine
from ..tables import Result

TABLE: Final = "a2a"
app = CommandLine(help="Other programs' agents (A2A), whose skills your agents can call.")


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its skills become NAME__skill.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Where its card is.")],
    headers_file: mcp.HeadersFile = None,
    allow_private: mcp.MayBePrivate = False,
    risk: Annotated[
        str | None, typer.Option(help="Of asking it: read, write, external, destructive.")
    ] = None,
) -> Result:
    """Add an agent to vigil.toml. A running Vigil takes it up by itself.

    Whatever your agents tell it leaves this machine; what it answers counts as from outside.
    """
    settings = config.load()
    values = mcp_servers.section_of(
        url=url,
        headers_file=mcp.secret_file("--headers-file", headers_file),
        allow_private=allow_private,
        risk=risk,
    )
    mcp.write(settings, TABLE, name, values)
    text = f"[a2a.{name}] is in {settings.file}; `vigil a2a list` shows its state and skills"
    return mcp.changed(settings, name, text)


@app.command("list")
def list_() -> Result:
    """List the agents: how they are, their skills, and what is held back."""
    settings = configured.settings()
    shelves, pins = operator.run(settings, mcp.stored)
    agents = sorted(settings.config.a2a.items())
    views = [mcp.view_of(name, agent, shelves, pins) for name, agent in agents]
    empty = "No agents of others. `vigil a2a add` adds one."
    listed = tables.listing("agents", views, mcp.COLUMNS, empty=empty)
    return listed._replace(show=partial(mcp.show, listed, views))


@app.command()
def remove(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="NAME of [a2a.NAME].", autocompletion=completion.named(TABLE)
        ),
    ],
) -> Result:
    """Take an agent out of vigil.toml, and forget what was approved of it."""
    return mcp.taken_out(config.load(), TABLE, check_part("name", name))
