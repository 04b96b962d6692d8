"""`vigil mcp`: a memory for other programs, on stdin and stdout; and the MCP servers that agents
use.

Without a command it is itself a server. Its commands are about those of ``[mcp.NAME]``: what the
executor tells of them in the bucket TOOLS, and what was approved of their tools in PINS. Both are
read with the operator's own credential, as tokens are.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vigil import distribution
from vigil.contracts import HeldTool, Pin, Pins, Shelf, Tool, decode_pins, decode_shelf
from vigil.edits import toml_sections
from vigil.errors import ConfigError, VigilError
from vigil.local import command_lines, mcp_servers, system
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.servers import ToolServer
from vigil.subjects import check_part
from vigil.words.aims import proposed
from vigil.words.amounts import count_of

from .. import configured, exits, options, output, tables
from ..accounts import catalogue, server_sign_in
from ..accounts.server_sign_in import Server
from ..admin import operator
from ..admin.backup import quiet
from ..field_options import Agent, User
from ..registry import CommandLine
from ..tables import Column, Result

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

app = CommandLine(
    help="A memory as an MCP server; and the servers whose tools agents use.",
    invoke_without_command=True,
)
app.command("sign-in")(server_sign_in.sign_in)
app.command("sign-out")(server_sign_in.sign_out)
app.command("search")(catalogue.search)


@app.callback()
def mcp(context: typer.Context, agent: Agent = "vigil", user: User = None) -> None:
    """Serve a memory as an MCP server on stdin and stdout, for another program to start.

    It acts with the token of this home, or VIGIL_TOKEN. Vigil need not run yet when it starts. At
    /mcp the gateway serves the same over HTTP.
    """
    if context.invoked_subcommand is None:
        _serve(agent, user)


def _serve(agent: str, user: str | None) -> None:
    check_part("agent", agent)
    if user is not None:
        check_part("user", user)
    quiet()
    try:
        from vigil.memory import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(f"this needs {error.name}: {distribution.command_for()}") from error
    from vigil.memory.behalf import Acting
    from vigil.memory.wire import Whose
    from vigil.sdk.over_http import MemoriesOverHttp

    client = options.client()
    acting = Acting(MemoriesOverHttp(client), Whose(user_id=user, agent_id=agent))

    def explain(error: Exception) -> str | None:
        return str(error) if isinstance(error, VigilError) else None

    def find(_: Any) -> Acting:
        return acting

    print(f"vigil: serving MCP for {client.url}; stdin's end ends it", file=sys.stderr)
    asyncio.run(mcp_server.serve_stdio(mcp_server.build(find, explain)))


# ---------------------------------------------------------------- looking


@app.command("list", hidden=True)  # as other nouns call it
@app.command()
def servers() -> Result:
    """List the servers that agents use: how they are, their tools, and what is held back."""
    settings = configured.settings()
    shelves, pins = operator.run(settings, stored)
    names = sorted({*settings.config.mcp, *shelves} - {mcp_servers.OWN, *settings.config.a2a})
    told = [view_of(name, settings.config.mcp.get(name), shelves, pins) for name in names]
    listed = tables.listing("servers", told, COLUMNS, empty="No servers: `vigil mcp add` adds one.")
    return listed._replace(show=partial(show, listed, told))


COLUMNS: Final = (
    Column("NAME", "name"),
    Column("STATE", "state"),
    Column("BY", "transport"),
    Column("TOOLS", lambda server: len(server["tools"])),
    Column("HELD", lambda server: len(server["held"])),
    Column("PROBLEM", "problem"),
)
TOOL_COLUMNS: Final = (Column("TOOL", "name"), Column("RISK", "risk"))


async def stored(bus: Bus) -> tuple[dict[str, Shelf], dict[str, Pins]]:
    """Return what is offered, and what was approved, by server."""
    shelves, pins = await operator.entries(bus, "TOOLS"), await operator.entries(bus, "PINS")
    return (
        {name: decode_shelf(data) for name, data in shelves.items()},
        {name: decode_pins(data) for name, data in pins.items()},
    )


def view_of(
    name: str, server: ToolServer | None, shelves: dict[str, Shelf], pins: dict[str, Pins]
) -> dict[str, Any]:
    shelf = shelves.get(name)
    known = pins.get(name, Pins(server=name)).tools
    tools, held = ((), ()) if shelf is None else (shelf.tools, shelf.held)
    return {
        "name": name,
        "state": mcp_servers.state_of(server, shelf),
        "transport": "http" if server is not None and server.url else "stdio",
        "problem": "" if shelf is None else shelf.problem,
        "facts": {} if shelf is None else shelf.facts,
        "tools": [_tool(one, known.get(one.name)) for one in tools],
        "held": [_held(one, known) for one in held],
    }


def _tool(one: Tool, pin: Pin | None) -> dict[str, Any]:
    by = None if pin is None else pin.by
    return {"name": one.name, "risk": one.risk, "digest": one.digest, "approved_by": by}


def _held(held: HeldTool, known: dict[str, Pin]) -> dict[str, Any]:
    before = known.get(held.name)
    return {
        "name": held.name,
        "digest": held.digest,
        "pinned": held.pinned,
        "is_new": before is None,
        "says": held.description,
        "said": "" if before is None else before.description,
    }


def show(listed: Result, told: list[dict[str, Any]]) -> None:
    listed.show()
    for one in told:
        _show_tools(one)


def _show_tools(one: dict[str, Any]) -> None:
    """Show the tools of a server; what is held back with both of its texts."""
    if tools := one["tools"]:
        n = sum(tool["approved_by"] == "first_sight" for tool in tools)
        output.data(f"\n{one['name']}: {count_of(len(tools), 'tool')}, {n} approved by first sight")
        tables.table(TOOL_COLUMNS, tools)
    if one["held"]:
        output.data(f"\n{one['name']}: held back until `vigil mcp approve {one['name']}`")
    for held in one["held"]:
        output.data(f"  {held['name']}: {'new' if held['is_new'] else 'changed'}")
        if not held["is_new"]:
            output.data(f"    said  {_line(held['said'])}")
        output.data(f"    says  {_line(held['says'])}")


def _line(text: str) -> str:
    """Return a text of somebody else in one line."""
    return output.printable(" ".join(text.split())) or "(nothing)"


# ---------------------------------------------------------------- approving


@app.command()
def approve(
    server: Server,
    tool: Annotated[
        str | None, typer.Argument(metavar="[TOOL]", help="One tool. Default: all held back.")
    ] = None,
) -> Result:
    """Let tools be offered that are new, or no longer what was approved, as they are now."""
    approved = operator.run(config.load(), lambda bus: _approve(bus, server, tool))
    facts = {"server": server, "approved": [_held(held, {}) for held in approved]}
    text = "\n".join(f"{held.name}: {_line(held.description)}" for held in approved)
    return Result(facts, partial(output.data, text))


async def _approve(bus: Bus, server: str, tool: str | None) -> list[HeldTool]:
    from vigil.trust import pins

    held = await pins.held_of(bus, check_part("server", server))
    wanted = [one for one in held if tool in (None, one.name, one.name.partition("__")[2])]
    if not wanted:
        what = f"{tool} of {server}" if tool else f"nothing of {server}"
        raise exits.NotReady(f"{what} is held back; see `vigil mcp servers`")
    await pins.approve(bus, server, wanted, datetime.now(UTC))
    return wanted


# ---------------------------------------------------------------- what arguments are for


@app.command()
def aims(server: Server) -> Result:
    """Propose, for each tool, which arguments say whom it reaches, which thing it is about, and
    what it says: lines for vigil.toml, for you to look through.

    What isn't declared counts as whom it reaches: once content from outside had a part, it must
    then stand in your own message.
    """
    shelves, _ = operator.run(configured.settings(), stored)
    if server not in shelves:
        raise exits.NotReady(f"{server} offers nothing yet; see `vigil mcp servers`")
    found = {tool.name.partition("__")[2]: _aims_of(tool) for tool in shelves[server].tools}
    lines = [f"{json.dumps(tool)} = {_inline(of)}" for tool, of in found.items() if of]
    text = "\n".join((f"[mcp.{server}.aims]", *lines))
    return Result({"server": server, "aims": found}, partial(output.data, text))


def _aims_of(tool: Tool) -> dict[str, str]:
    """Return what is configured of a tool's arguments; of the others what they seem to be."""
    return {**proposed(tool.input_schema), **tool.aims}


def _inline(of: dict[str, str]) -> str:
    return "{" + ", ".join(f'{json.dumps(name)} = "{aim}"' for name, aim in of.items()) + "}"


# ---------------------------------------------------------------- configuring


Variables = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A variable for the program; not for secrets."),
]
MayBePrivate = Annotated[
    bool, typer.Option("--allow-private", help="Let the URL lead to this machine or its network.")
]
VariablesFile = Annotated[
    Path | None,
    typer.Option(help="A file with one NAME=value a line, for secrets; read at each start."),
]
HeadersFile = Annotated[
    Path | None,
    typer.Option(help="A file with one 'Name: value' a line, sent to the URL: for tokens."),
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its tools become NAME__tool.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ARGS...]", help="A program that speaks MCP."),
    ] = None,
    url: Annotated[str, typer.Option(help="A server over streamable HTTP, instead.")] = "",
    env: Variables = None,
    env_file: VariablesFile = None,
    folder: Annotated[
        list[str] | None, typer.Option(help="A folder that the program may read and write.")
    ] = None,
    network: Annotated[
        bool, typer.Option("--network", help="Let the program reach the network.")
    ] = False,
    headers_file: HeadersFile = None,
    allow_private: MayBePrivate = False,
    risk: Annotated[
        str | None, typer.Option(help="Of its tools: read, write, external, destructive.")
    ] = None,
    from_: Annotated[
        str, typer.Option("--from", metavar="FOUND", help="What `vigil mcp search` found, instead.")
    ] = "",
    registry: catalogue.Registry = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> Result:
    """Add a server to vigil.toml. A running Vigil takes it up by itself.

    One of a catalogue (--from) is shown before: what runs, what it sees, and where it reaches.
    """
    settings = config.load()
    headers: dict[str, str] = {}
    if from_:
        has_secrets = env_file is not None or headers_file is not None
        given = dict(map(_pair, env or ()))
        offer = catalogue.chosen(from_, registry, given, has_secrets=has_secrets, is_sure=yes)
        command, url, headers = list(offer.command), offer.url, offer.headers
        env = [f"{key}={value}" for key, value in offer.env.items()]
        network = network or bool(command)
    # Of the catalogue nothing names a file of the folder that one happens to be in.
    found = command[:1] if command and from_ else command or []
    line = [*command_lines.resolved(found), *(command or [])[len(found) :]] if found else []
    values = mcp_servers.section_of(
        command=line[0] if line else "",
        args=line[1:],
        url=url,
        env=dict(map(_pair, env or ())),
        env_file=secret_file("--env-file", env_file),
        folders=folder or [],
        network=network,
        headers=headers,
        headers_file=secret_file("--headers-file", headers_file),
        allow_private=allow_private,
        risk=risk,
    )
    write(settings, "mcp", name, values)
    text = _words_of(settings, name, line)
    if command and mcp_servers.needs_network(command[0], network=network):
        text += f"\n{command[0]} fetches the program that it runs; that needs --network"
    return changed(settings, name, text)


def write(settings: Settings, table: str, name: str, values: dict[str, Any]) -> None:
    """Add a section to vigil.toml, and make the home if there is none."""
    from vigil.local.home import ensure_home

    ensure_home(settings, partial(system.person_of, os.environ))
    toml_sections.add(settings.file, table, name, values)


def _words_of(settings: Settings, name: str, line: Sequence[str]) -> str:
    """Say what was added, what runs for it, and what to look at next."""
    text = (
        f"[mcp.{name}] is in {settings.file}; `vigil mcp servers` shows its state, and "
        f"`vigil mcp aims {name}` proposes what its tools' arguments are for"
    )
    if line:
        found = "It runs" if Path(line[0]).is_absolute() else "No such program here yet:"
        text += f"\n{found} {output.printable(shlex.join(line))}"
    return text


def changed(settings: Settings, name: str, text: str) -> Result:
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


def secret_file(option: str, path: Path | None) -> str:
    """Return a file's absolute path; the executor reads it, from another folder."""
    if path is None:
        return ""
    path = path.expanduser().absolute()
    try:
        mode = path.stat().st_mode
        path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{option}: {path}: {error.strerror}") from error
    if mode & 0o077:
        output.message(f"vigil: others of this machine may read {path}; `chmod 600` it")
    return str(path)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


@app.command()
def remove(name: Server) -> Result:
    """Take a server out of vigil.toml, and forget what was approved of it."""
    from vigil.oauth import kept

    settings = config.load()
    done = taken_out(settings, "mcp", name)
    kept.forget(settings.home, name)
    return done


def taken_out(settings: Settings, table: str, name: str) -> Result:
    """Take a section out of vigil.toml, and forget what was approved of whom it names."""
    toml_sections.remove(settings.file, table, name)
    try:
        operator.run(settings, lambda bus: _forget(bus, name))
    except exits.NotReady:
        output.message(f"Vigil isn't running: what was approved of {name} stays approved.")
    return changed(settings, name, f"[{table}.{name}] is no longer in {settings.file}")


async def _forget(bus: Bus, name: str) -> None:
    from vigil.bus.kv import KeyValue

    await KeyValue(bus, "PINS").delete(name)
