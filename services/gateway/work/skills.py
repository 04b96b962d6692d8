"""Skills: what jobs can do, as files that a person can edit (SPEC J-1).

    $VIGIL_HOME/skills/{name}.md

    ---
    name: describe-machine
    goal: Write a script that describes the machine, run it, and show its report
    tools: write_file, shell, read_file
    ---
    How to do it, in plain words.

The head has one ``key: value`` a line, no more of YAML than that. `goal` is needed. `name`, if it
is there, must be the file's. `tools` are those that a plan may use, by name or ``server__*``;
without them it may use all that jobs may. What follows the head is told to whoever plans the job.
A skill of the open form (`vigil.skills`) is one of jobs, too.

A file that can't be used costs itself and never the others: what is wrong with it is said with its
name and line, wherever skills are listed or asked for.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import structlog

from vigil.errors import InvalidInput, NotFound
from vigil.fields.bodies import Answer
from vigil.files import create
from vigil.skills import folder as folders
from vigil.words.nearest import meant

log = structlog.get_logger("vigil.skills")

SHIPPED: Final = Path(__file__).resolve().parents[3] / "prompts" / "en" / "skills"
FILE_BYTES_MAX: Final = 32 * 1024
GOAL_BYTES_MAX: Final = 8 * 1024
"""Of the goal and what follows the head, together."""
SKILLS_MAX: Final = 500
TOOLS_MAX: Final = 100
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
TOOL: Final = re.compile(r"[A-Za-z0-9_-]{1,128}\*?", re.ASCII)
KEYS: Final = ("name", "goal", "tools")
FENCE: Final = "---"
MARK: Final = ".examples"
"""Tells that the examples were put into the folder once."""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill, ready to be used."""

    name: str
    goal: str
    """In a line."""
    tools: tuple[str, ...] = ()
    """Those that a plan may use; empty: all that jobs may use."""
    text: str = ""
    """How to do it."""

    @property
    def task(self) -> str:
        """What whoever plans is told: the goal, and how."""
        return f"{self.goal}\n\n{self.text}" if self.text else self.goal


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is no skill, and why."""

    name: str
    problem: str


class SkillList(Answer, frozen=True, kw_only=True):
    """What there is in the folder of skills, and which files can't be used."""

    skills: tuple[Skill, ...]
    broken: tuple[Broken, ...] = ()


def parse(name: str, content: str) -> Skill:
    """Parse the file of the skill `name`.

    Raises:
        InvalidInput: naming file, line and reason.
    """
    lines = content.splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise _no(name, 1, f"the first line must be {FENCE!r}")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise _no(name, len(lines), f"the head has no end: a line with {FENCE!r} alone")
    head, at = _head(name, lines[1:end])
    if head.get("name", name) != name:
        raise _no(name, at["name"], f"the name must be {name!r}, like the file's")
    if not head.get("goal"):
        raise _no(name, at.get("goal", end + 1), "there must be a goal: 'goal: …'")
    skill = Skill(
        name=name,
        goal=head["goal"],
        tools=_tools(name, at.get("tools", 0), head.get("tools", "")),
        text="\n".join(lines[end + 1 :]).strip(),
    )
    if len(skill.task.encode()) > GOAL_BYTES_MAX:
        raise _no(name, end + 1, f"goal and text have more than {GOAL_BYTES_MAX} bytes")
    return skill


def _no(name: str, number: int, reason: str) -> InvalidInput:
    return InvalidInput("skill", f"{name}.md, line {number}: {reason}")


def _head(name: str, lines: list[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the values of the head, and the line of each."""
    values: dict[str, str] = {}
    at: dict[str, int] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        key = key.strip()
        if not colon or line[0].isspace():
            raise _no(name, number, "must be 'key: value'; longer texts go below the head")
        if key not in KEYS:
            raise _no(name, number, f"{key[:40]!r} is not a known key; there are {', '.join(KEYS)}")
        if key in values:
            raise _no(name, number, f"{key!r} is given twice")
        values[key], at[key] = _unquoted(value.strip()), number
    return values, at


def _unquoted(value: str) -> str:
    """Take a pair of quotes off, as YAML allows them.

    >>> _unquoted('"a: b"'), _unquoted("it's")
    ('a: b', "it's")
    """
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def _tools(name: str, number: int, value: str) -> tuple[str, ...]:
    """Return the tools of ``a, b`` or ``[a, b]``."""
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    found = tuple(_unquoted(part.strip()) for part in value.split(",") if part.strip())
    for tool in found:
        if not TOOL.fullmatch(tool):
            raise _no(name, number, f"{tool[:40]!r} can't be the name of a tool")
    if len(found) > TOOLS_MAX:
        raise _no(name, number, f"there are more than {TOOLS_MAX} tools")
    return tuple(dict.fromkeys(found))


# ---------------------------------------------------------------- files


def find(folder: Path, name: str) -> Skill:
    """Read one skill.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it can't be used; names file, line and reason.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput("skill", "may contain only letters A-Z a-z, digits, '_' and '-'")
    try:
        return parse(name, _read(name, folder / f"{name}.md"))
    except FileNotFoundError:
        return _of_folder(folder, name)


def _of_folder(folder: Path, name: str) -> Skill:
    """Return a skill of the open form as one of jobs: whoever works reads it by a tool."""
    try:
        found = folders.find(folder, name).text
    except (NotFound, InvalidInput) as error:
        if isinstance(error, InvalidInput) and error.field != "name":
            raise InvalidInput("skill", f"{name}: {error.reason}") from error
        there = [*(path.stem for path in _files(folder)), *sorted(folders.names(folder))]
        raise NotFound(f"there is no skill {name!r}{meant(name, there)}") from error
    how = f"First read how it is done: skill_read with the name {name!r}, as the first step."
    return Skill(name=name, goal=found.description, text=how)


def read_all(folder: Path) -> tuple[list[Skill], list[Broken]]:
    """Read every skill of a folder, by name, and tell which files are none."""
    skills: list[Skill] = []
    broken: list[Broken] = []
    for name in [*(path.name for path in _files(folder)), *sorted(folders.names(folder))]:
        try:
            skills.append(find(folder, name.removesuffix(".md")))
        except InvalidInput as error:
            broken.append(Broken(name=name, problem=error.reason))
        except NotFound:
            continue  # it was deleted meanwhile
    return skills, broken


def _files(folder: Path) -> Iterator[Path]:
    try:
        found = sorted(p for p in folder.iterdir() if p.suffix == ".md" and p.name[0] != ".")
    except OSError:
        return iter(())
    return iter(found[:SKILLS_MAX])


def _read(name: str, path: Path) -> str:
    """Return the text of a file. Raises: FileNotFoundError, InvalidInput."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InvalidInput("skill", f"{name}.md: is not a regular file")
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise InvalidInput("skill", f"{name}.md: has more than {FILE_BYTES_MAX} bytes")
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput("skill", f"{name}.md: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _no(name, line, "is not UTF-8") from error
    if "\0" in text:
        raise _no(name, text[: text.index("\0")].count("\n") + 1, "holds a NUL")
    return text


def ensure(folder: Path, shipped: Path = SHIPPED) -> None:
    """Put the examples into a folder that nobody put anything into yet.

    Whoever empties it is left alone: a hidden file stays behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            return
        for path in sorted(shipped.glob("*.md")):
            create(folder / path.name, path.read_bytes())
        create(folder / MARK, b"The examples were put here once.\n")
    except OSError as error:
        log.warning(
            "the skills can't be made",
            action="skills.not_made",
            folder=str(folder),
            error=str(error),
        )
