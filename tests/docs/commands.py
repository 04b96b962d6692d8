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
        if not inside.hidden:
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


# ---------------------------------------------------------------- the manual page


def roff(text: str) -> str:
    r"""Return a text as roff takes it, a paragraph in each that a blank line divides.

    >>> roff(".one-two\\n")
    '\\&.one\\-two\\e\\&n'
    """
    plain = text.replace("\\", "\\e\\&").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in plain.split("\n"))


def manual() -> str:
    """Return the manual page: `man vigil`, or `man -l deploy/vigil.1`."""
    first, *others = commands()
    parts = [
        '.TH VIGIL 1 "" "Vigil" "Vigil\'s manual"',
        ".SH NAME\nvigil \\- agents that act on their own and can be trusted to",
        ".SH SYNOPSIS\n.B vigil\nCOMMAND [OPTIONS] [ARGS]...",
        ".SH DESCRIPTION",
        _paragraphs(first[1].help or ""),
        ".SH COMMANDS",
        *(_manual_of(path, command) for path, command in others),
        ".SH EXIT STATUS",
        _paragraphs(exits.HELP),
        ".SH FILES\n.I $VIGIL_HOME/vigil.toml\n.br\nSettings; see `vigil config`.",
    ]
    return "\n".join(parts) + "\n"


def _manual_of(path: tuple[str, ...], command: Any) -> str:
    context = command.context_class(command, info_name=" ".join(path))
    usage = command.get_usage(context).removeprefix("Usage: ")
    records = [one.get_help_record(context) for one in command.params if one.name != SHORT]
    rows = [f".TP\n.B {roff(names)}\n{roff(text)}" for names, text in filter(None, records) if text]
    return "\n".join([f".SS {roff(usage)}", _paragraphs(command.help or ""), *rows])


def _paragraphs(text: str) -> str:
    return "\n.PP\n".join(roff(part.strip()) for part in text.strip().split("\n\n"))
