"""`vigil skills`: what agents may do as it is told there, shown to a person before it's enabled."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vigil.errors import InvalidInput, NotFound, VigilError
from vigil.settings import config
from vigil.skills import folder
from vigil.skills.folder import SkillFolder
from vigil.skills.form import FILE

from .. import output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

SCRIPTS: Final = "scripts/"
"""Where the form has what can be run."""

app = CommandLine(
    cls=ListedGroup,
    help="Skills of the open Agent Skills form: list, show, add, remove. Default: list.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a skill.")]
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("FILES", "files"),
    Column("DESCRIPTION", lambda one: tables.short(one["description"] or one["problem"])),
)


@app.command("list")
def list_() -> Result:
    """List what is enabled, and what changed since."""
    home = config.load().skills
    found = [_facts(home, name) for name in sorted(folder.names(home))]
    return tables.listing("skills", found, COLUMNS, empty="No skill is enabled.")


def _facts(home: Path, name: str) -> dict[str, Any]:
    try:
        skill = folder.find(home, name)
    except VigilError as error:
        return {"name": name, "description": "", "files": 0, "problem": str(error)}
    return {
        "name": name,
        "description": skill.text.description,
        "files": len(skill.files),
        "problem": "",
    }


@app.command()
def show(name: Name) -> Result:
    """Show one: what it says, and its files."""
    found = folder.find(config.load().skills, name)
    return Result(_told(found), partial(_show, found, output.data))


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
    return tables.done(f"Enabled {found.text.name}.", _told(found))


@app.command()
def remove(name: Name) -> Result:
    """Remove a skill; copies in workspaces stay."""
    if not folder.disable(config.load().skills, name):
        raise NotFound(f"there is no skill {name!r}")
    return tables.done(f"Removed {name}.", {"name": name})


def _told(found: SkillFolder) -> dict[str, Any]:
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
