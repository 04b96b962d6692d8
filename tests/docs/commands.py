"""The page of commands: what each says with `--help`, without frames and colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import typer.main

from vigil.cli import exits
from vigil.cli.app import app

SHORT: Final = "json"
"""Nearly every command has it, so it is said once."""


def walked(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command with the words that lead to it, a group before what is in it."""
    yield path, command
    for name, inside in getattr(command, "commands", {}).items():
        yield from walked(inside, (*path, name))


def commands() -> list[tuple[tuple[str, ...], Any]]:
    return list(walked(typer.main.get_command(app), ("vigil",)))


def section(path: tuple[str, ...], command: Any) -> str:
    context = command.context_class(command, info_name=" ".join(path))
    usage = command.get_usage(context).removeprefix("Usage: ")
    rows = "\n".join(row for one in command.params if (row := parameter(one, context)))
    parts = (f"## {' '.join(path)}", f"    {usage}", (command.help or "").strip(), rows)
    return "\n\n".join(part for part in parts if part)


def parameter(one: Any, context: Any) -> str:
    """Return the line of an argument or option; empty: it's said once for all, or hidden."""
    record = one.get_help_record(context)
    if record is None or one.name == SHORT:
        return ""
    names, text = record
    return f"* `{names}`: {text}"


def page() -> str:
    text = (
        "What `vigil COMMAND --help` says of each. Those that print tables print JSON with "
        "`--json`: one object, or one a line for streams."
    )
    parts = (section(path, command) for path, command in commands())
    return "\n\n".join(("# Commands", text, exits.HELP.strip(), *parts)) + "\n"
