"""Every command of `vigil` that a page or a message names is one that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer.main

from vigil.cli.app import app

ROOT: Final = Path(__file__).parents[2]
TEXTS: Final = "*.md", "docs/**/*.md", "shared/**/*.py", "services/**/*.py", "deploy/*", "*.yml"
NAMED: Final = re.compile(
    r"(?:`|^ {4,}(?:\.venv/bin/)?)vigil ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?(?=[` \n])", re.MULTILINE
)
"""In backquotes, or at the start of an indented line."""


def named() -> Iterator[tuple[str, str, str]]:
    for file in (file for pattern in TEXTS for file in ROOT.glob(pattern) if file.is_file()):
        for command, word in NAMED.findall(file.read_text("utf-8")):
            yield str(file.relative_to(ROOT)), command, word


def test_every_command_that_is_named_exists() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = list(named())
    assert len(found) > 100
    unknown = [
        (file, command, word)
        for file, command, word in found
        if command not in commands
        or (
            word
            and not commands[command].params
            and word not in getattr(commands[command], "commands", [word])
        )
    ]
    assert unknown == []
