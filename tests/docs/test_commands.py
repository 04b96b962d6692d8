"""Every command of `vigil` that a page or a message names is one that exists, as it is named."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
from typer import Exit
from typer._click.exceptions import ClickException

from vigil.board.outside import kinds
from vigil.cli import times
from vigil.cli.app import app
from vigil.errors import InvalidInput
from vigil.sdk.client import Client

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = "*.md", "docs/**/*.md"
CODE: Final = "shared/**/*.py", "services/**/*.py"
TEXTS: Final = *PAGES, *CODE, "deploy/*", "*.yml"
NAMED: Final = re.compile(
    r"(?:`|^ {4,}(?:\.venv/bin/)?)vigil ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?(?=[` \n])", re.MULTILINE
)
"""In backquotes, or at the start of an indented line."""
LINE: Final = re.compile(r"(?:\$ )?(?:[A-Z][A-Z_]*=\S+ )*(?:\.venv/bin/)?vigil ([a-z-].+)")
"""What a shell is told: behind a prompt and variables, if there are any."""
INLINE: Final = re.compile(r"`(?:\.venv/bin/)?vigil ([^`\n]+)`")
MESSAGE: Final = re.compile(r"\bvigil ([a-z][a-z-]+ [^`\n),;]+)")
"""What a message tells a person to type, also without backquotes."""
AHEAD: Final = re.compile(r"&&|\||;|\d?>")
ELIDED: Final = re.compile(r"…|[|\[\]]|\.\.\.")
"""In what stands for something else: `get|set`, `[--mine]`."""
VALUE: Final = "7"
"""What a message fills in."""
COMMANDS: Final[Any] = typer.main.get_command(app)


def named() -> Iterator[tuple[str, str, str]]:
    for file in (file for pattern in TEXTS for file in ROOT.glob(pattern) if file.is_file()):
        for command, word in NAMED.findall(file.read_text("utf-8")):
            yield str(file.relative_to(ROOT)), command, word


def test_every_command_that_is_named_exists() -> None:
    commands = COMMANDS.commands
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


# ------------------------------------------------------------ whole lines


@pytest.fixture(autouse=True)
def no_vigil(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A day that is typed is one of the person's zone, for which a Vigil is asked: none runs."""
    monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
    monkeypatch.setattr(Client, "person", lambda _: {"timezone": "UTC"})


def blocks(text: str) -> Iterator[str]:
    """Yield the lines of a page's blocks of code, those that go on put together.

    >>> list(blocks("Do:\\n\\n    vigil up \\\\\\n        --detach\\n"))
    ['vigil up --detach']
    """
    is_fenced, before = False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            code = before + line.strip()
            before = code[:-1] if code.endswith("\\") else ""
            if not before:
                yield code


def typed(line: str) -> list[str] | None:
    """Return the words of the first command of a line; None: it leaves something out.

    >>> typed("vigil send hi > said  # and more"), typed("vigil down && ls"), typed("vigil a|b")
    (['send', 'hi'], ['down'], None)
    """
    if (match := LINE.fullmatch(line)) is None:
        return None
    try:
        words = shlex.split(match[1], comments=True)
    except ValueError:  # a text of several lines begins
        return None
    end = next((at for at, word in enumerate(words) if AHEAD.match(word)), len(words))
    words = words[:end]
    return None if any(map(ELIDED.search, words)) else words


def refused(words: list[str], *, is_whole: bool = True) -> str:
    """Return why a command can't be typed so; empty: it can, or there may be more of it.

    Args:
        is_whole: whether nothing may be missing, also where it's named without what belongs to it.
    """
    command, path, rest = COMMANDS, ["vigil"], words
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest[0]]
        path, rest = [*path, rest[0]], rest[1:]
    if inside := getattr(command, "commands", {}):
        if rest and not rest[0].startswith("-"):
            return f"no command {rest[0]!r}"
        if "list" not in inside:  # nothing follows but what the whole program takes
            return ""
        command = inside["list"]
    try:
        context = command.make_context(" ".join(path), list(rest))
        _check_spans(path, context.params)
    except Exit:  # it asks for help
        return ""
    except (ClickException, InvalidInput) as error:
        said = error.format_message() if isinstance(error, ClickException) else str(error)
        is_short = said.startswith("Missing ") or "requires an argument" in said
        is_named = all(word.startswith("-") for word in rest)
        may_be = (is_short and is_named and not is_whole) or "does not exist" in said
        return "" if may_be else said  # a file is the reader's
    return ""


def _check_spans(path: list[str], given: dict[str, Any]) -> None:
    """Check the spans that a command of a kind of the board is given: it reads them as it runs.

    Raises:
        InvalidInput: one isn't any.
    """
    kind = kinds().get(path[1])
    for command in kind.commands.commands if kind else ():
        if command.name == path[-1]:
            for one in command.gives:
                if one.time == "span":
                    times.seconds(one.option, given[one.field])


def lines_of_pages() -> Iterator[tuple[str, list[str], bool]]:
    """Yield what pages say is typed, and whether it's all of it."""
    for file in (file for pattern in PAGES for file in ROOT.glob(pattern)):
        name, text = str(file.relative_to(ROOT)), file.read_text("utf-8")
        if file.name in ("CHANGELOG.md", "commands.md"):  # of its time; usage
            continue
        for line in blocks(text):
            if words := typed(line):
                yield name, words, True
        for line in INLINE.findall(text):
            if words := typed(f"vigil {line}"):
                yield name, words, False


def test_every_command_of_a_page_can_be_typed_as_it_stands_there() -> None:
    """Its options, arguments and choices are those that it has."""
    found = list(lines_of_pages())
    assert len(found) > 400
    wrong = [
        (name, " ".join(words), why)
        for name, words, is_whole in found
        if (why := refused(words, is_whole=is_whole))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("approvals answer ID --text no", "No such option: --text"),
        ("approvals edit ID '{}'", "Missing option '--input'"),
        ("goals add x --every 3600", "3600 of what?"),
        ("memory list --type bogus", "'bogus' is not one of"),
        ("memory lost", "no command 'lost'"),
    ],
)
def test_a_command_that_cannot_be_typed_is_found(line: str, why: str) -> None:
    assert why in refused(shlex.split(line), is_whole=False)


# ------------------------------------------------------------ messages


def texts_of(source: str) -> Iterator[str]:
    """Yield the texts of a program, with a value for each that is filled in.

    >>> list(texts_of('f"say `vigil why {id_}`"'))
    ['say `vigil why 7`']
    """
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            parts = (one.value if isinstance(one, ast.Constant) else VALUE for one in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def lines_of_messages() -> Iterator[tuple[str, list[str]]]:
    """Yield what messages tell a person to type."""
    for file in (file for pattern in CODE for file in ROOT.glob(pattern)):
        source = file.read_text("utf-8")
        if "vigil " not in source:
            continue
        for text in texts_of(source):
            lines = (*INLINE.findall(text), *MESSAGE.findall(INLINE.sub("", text)))
            for line in lines:
                if (words := typed(f"vigil {line.strip(' .:')}")) and words[0] in COMMANDS.commands:
                    yield str(file.relative_to(ROOT)), words


def test_every_command_of_a_message_can_be_typed_as_it_stands_there() -> None:
    found = list(lines_of_messages())
    assert len(found) > 100
    wrong = [
        (name, " ".join(words), why)
        for name, words in found
        if (why := refused(words, is_whole=False))
        and not why.endswith(f"extra argument(s) ({VALUE})")  # it may stand for an option
    ]
    assert wrong == []
