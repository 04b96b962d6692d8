"""What `vigil doctor` says of MCP servers, of others' agents (A2A), and of grants of tools that
nobody offers: as a running executor tells it; where none does, whether a server's program is there.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from vigil.checks import Check, fail, ok, warn
from vigil.contracts import Shelf
from vigil.doctor.channels import Examine
from vigil.errors import InvalidInput, VigilError
from vigil.grants.there import check_there
from vigil.local.mcp_servers import SIGN_IN, needs_network, state_of
from vigil.settings.config import Settings
from vigil.settings.servers import McpServer, ToolServer
from vigil.words.amounts import count_of

from ..admin import operator
from ..commands import mcp

Shelves = Callable[[], dict[str, Shelf]]


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check of each that is switched on, and of each grant of vigil.toml, by name."""
    shelves = functools.cache(partial(_shelves, settings))
    found: dict[str, Examine] = {
        f"server {name}": partial(_server, name, server, shelves)
        for name, server in sorted(settings.config.tool_servers.items())
        if server.is_enabled
    }
    for one in settings.config.grants:
        found[f"grant {one.name}"] = partial(_grant, one.tool, shelves)
    return found


def _shelves(settings: Settings) -> dict[str, Shelf]:
    try:
        return operator.run(settings, mcp.stored)[0]
    except VigilError:
        return {}


def _server(name: str, server: ToolServer, shelves: Shelves, _: Settings) -> Check:
    if (shelf := shelves().get(name)) is not None:
        return check_of(name, server, shelf)
    command = server.command if isinstance(server, McpServer) else ""
    if command and shutil.which(str(Path(command).expanduser())) is None:
        return fail(f"command: {command!r} is not a program", _remedy(name, server, ""))
    return ok("nothing runs that asks it")


def check_of(name: str, server: ToolServer, shelf: Shelf) -> Check:
    """Return what a server's shelf means. A program that doesn't run is a fault of this machine;
    who is elsewhere may be away."""
    state = state_of(server, shelf)
    if state != "connected":
        found = shelf.problem or state
        is_here = isinstance(server, McpServer) and server.command
        return (fail if is_here else warn)(found, _remedy(name, server, found))
    offered = count_of(len(shelf.tools), "tool")
    if shelf.held:
        return warn(f"{offered}; {shelf.problem}", f"`vigil mcp`, then `vigil mcp approve {name}`")
    return warn(f"{offered}; {shelf.problem}", "`vigil mcp`") if shelf.problem else ok(offered)


def _grant(tool: str, shelves: Shelves, settings: Settings) -> Check | None:
    """Return that a grant of the configuration is of a tool that there isn't; None: it may be."""
    try:
        check_there(tool, shelves().values(), settings.config.tool_servers)
    except InvalidInput as error:
        return warn(str(error), "correct tool of it in [[grants]]: it lets nothing through")
    return None


def _remedy(name: str, server: ToolServer, problem: str) -> str:
    if SIGN_IN in problem:
        return f"`vigil mcp sign-in {name}`"
    if not isinstance(server, McpServer):
        return f"is it there, and its url right in [a2a.{name}]? `vigil a2a` shows how it is"
    if not server.command:
        return f"is it there, and its url right in [mcp.{name}]? `vigil mcp` shows how it is"
    if needs_network(server.command, network=server.network):
        return f"network = true in [mcp.{name}], if it is to fetch what it runs"
    return f"install it, or correct command and args of [mcp.{name}]; `vigil mcp` shows how it is"
