"""`vigil skills`: what agents may do as it is told there, shown to a person before it's enabled."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vigil.contracts import Shelf, Tool, decode_shelf
from vigil.errors import InvalidInput, VigilError
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.skills import folder
from vigil.skills.folder import SkillFolder
from vigil.skills.form import FILE

from .. import configured, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from . import operator

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

SCRIPTS: Final = "scripts/"
"""Where the form has what can be run."""

app = CommandLine(
    cls=ListedGroup,
    help="Skills of the open Agent Skills form: list, show, add, remove. Default: list.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a skill.")]
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("FILES", lambda one: "" if one["server"] else one["files"]),
    Column("SERVER", "server"),
    Column("DESCRIPTION", lambda one: tables.short(one["description"] or one["problem"])),
)


@app.command("list")
def list_() -> Result:
    """List what is enabled, and what changed since; of a running Vigil also skills of MCP servers
    (their prompts)."""
    settings = configured.settings()
    found = [_facts(settings.skills, name) for name in sorted(folder.names(settings.skills))]
    found += [_facts_of(tool, name) for tool, name in _of_servers(settings)]
    return tables.listing("skills", found, COLUMNS, empty="No skill is enabled.")


def _facts(home: Path, name: str) -> dict[str, Any]:
    facts = {"name": name, "description": "", "files": 0, "server": "", "problem": ""}
    try:
        skill = folder.find(home, name)
    except VigilError as error:
        return facts | {"problem": str(error)}
    return facts | {"description": skill.text.description, "files": len(skill.files)}


def _facts_of(tool: Tool, server: str) -> dict[str, Any]:
    facts = {"name": tool.name, "description": tool.description, "files": 0}
    return facts | {"server": server, "problem": ""}


def _of_servers(settings: Settings) -> list[tuple[Tool, str]]:
    """Return the prompts that servers offer, with their server; none, unless Vigil runs."""
    try:
        shelves = operator.run(settings, _shelves)
    except VigilError:
        return []
    return [(tool, one.source) for one in shelves for tool in one.tools if tool.is_skill]


async def _shelves(bus: Bus) -> list[Shelf]:
    found = await operator.entries(bus, "TOOLS")
    return [decode_shelf(data) for _, data in sorted(found.items())]


@app.command()
def show(name: Name) -> Result:
    """Show one: what it says, and its files; of a server's, what it says of itself."""
    settings = configured.settings()
    for tool, server in _of_servers(settings) if "__" in name else ():
        if tool.name == name:
            return _shown(tool, server)
    found = folder.find(settings.skills, name)
    return Result(_view(found), partial(_show, found, output.data))


def _shown(tool: Tool, server: str) -> Result:
    arguments = tool.input_schema.get("properties", {})
    facts = _facts_of(tool, server) | {"arguments": arguments, "digest": tool.digest}

    def say() -> None:
        output.data(f"{tool.name}: {output.printable(tool.description)}")
        for name, about in arguments.items():
            said = about.get("description", "")
            output.data(f"  {output.printable(name)}  {output.printable(said)}")
        output.data(f"Its text comes from the server {server} each time it is used.")

    return Result(facts, say)


@app.command()
def add(
    path: Annotated[Path, typer.Argument(help="A folder with a SKILL.md.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> Result:
    """Enable a skill: all that it says is shown first, and it's copied when you agree."""
    try:
        found = folder.read(path)
    except OSError as error:
        raise InvalidInput("path", f"can't be read ({error.strerror})") from error
    if not yes:
        _show(found, output.message)
        if not sys.stdin.isatty():
            raise InvalidInput("--yes", "is needed where nobody can be asked")
        typer.confirm("Let agents do as it says?", abort=True, err=True)
    folder.enable(config.load().skills, found)
    return tables.done(f"Enabled {found.text.name}.", _view(found))


@app.command()
def remove(name: Name) -> Result:
    """Remove a skill; copies in workspaces stay."""
    home = config.load().skills
    if not folder.disable(home, name):
        raise folder.none_called(home, name)
    return tables.done(f"Removed {name}.", {"name": name})


def _view(found: SkillFolder) -> dict[str, Any]:
    return {
        "name": found.text.name,
        "description": found.text.description,
        "body": found.text.body,
        "files": {path: len(data) for path, data in found.files.items()},
        "digest": found.digest,
    }


def _show(found: SkillFolder, say: Any) -> None:
    say(f"{found.text.name}: {output.printable(found.text.description)}")
    say("")
    say(output.printable(found.text.body))
    say("")
    for path, data in found.files.items():
        if path != FILE:
            what = "  (can be run)" if path.startswith(SCRIPTS) else ""
            say(f"{len(data):>9} bytes  {output.printable(path)}{what}")
