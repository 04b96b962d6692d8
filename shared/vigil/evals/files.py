"""Stories as files: TOML, with ``[[story]]`` for each and ``[[story.step]]`` for its steps.

What is wrong is told with the line, the story and the field, all of a file at once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..words.nearest import did_you_mean
from .story import EvalStep, EvalStory, Expected, check

STARTER: Final = ("reminders", "memory", "restraint", "injection", "nights")
"""Themes of the stories that come with the package, a file each."""
_HEADER: Final = re.compile(r"^\s*\[\[\s*story\s*\]\]", re.MULTILINE)
_STEP: Final = re.compile(r"^\s*\[\[\s*story\s*\.\s*step\s*\]\]", re.MULTILINE)
_PATH: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(\w+)`")
_INDEX: Final = re.compile(r"\[(\d+)\]")


def of_file(path: Path) -> tuple[EvalStory, ...]:
    """Read the stories of a file.

    Raises:
        InvalidInput: its field is the file; the reason has a line for each mistake.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise InvalidInput(str(path), "there is no such file") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), "is no text in UTF-8") from error
    return of_text(text, str(path))


def starter(theme: str) -> tuple[EvalStory, ...]:
    """Return the stories of one of the themes that come with the package."""
    file = resources.files(__package__) / "stories" / f"{theme}.toml"
    return of_text(file.read_text("utf-8"), f"{theme}.toml")


def of_text(text: str, name: str) -> tuple[EvalStory, ...]:
    """Read the stories of a text. Raises: InvalidInput, as `of_file`."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number, or of brackets, without end
        raise InvalidInput(name, f"is no TOML: {error}") from error
    found, mistakes = _read(raw, text)
    if mistakes:
        raise InvalidInput(name, "\n  ".join(["can't be played", *mistakes]))
    return tuple(found)


def check_names(stories: Sequence[EvalStory]) -> None:
    """Raise InvalidInput where two stories of a run have one name."""
    names = [story.name for story in stories]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(name, "is the name of two stories")


def _read(raw: dict[str, Any], text: str) -> tuple[list[EvalStory], list[str]]:
    rows = raw.get("story")
    mistakes = [f"{key}: stories stand in [[story]]" for key in raw if key != "story"]
    if not isinstance(rows, list) or not rows:
        return [], mistakes or ["there is no [[story]] in it"]
    found: list[EvalStory] = []
    for number, row in enumerate(rows):
        try:
            found.append(_story(row))
        except InvalidInput as error:
            called = row.get("name") if isinstance(row, dict) else None
            place = f"line {_line(text, number, error.field)}, story {called or number + 1}"
            mistakes.append(f"{place}: {error}")
    for name in dict.fromkeys(one.name for one in found):
        if sum(one.name == name for one in found) > 1:
            mistakes.append(f"name: two stories are called {name}")
    return found, mistakes


def _story(row: Any) -> EvalStory:
    try:
        story = msgspec.convert(row, EvalStory)
    except msgspec.ValidationError as error:
        raise _worded(str(error)) from error
    check(story)
    return story


def _worded(message: str) -> InvalidInput:
    """Return what the library found, with the field as it's written in the file."""
    match = _PATH.match(message)
    what, path = (match["what"], match["path"] or "") if match else (message, "")
    field = _INDEX.sub(lambda found: f".{int(found[1]) + 1}", path).lstrip(".")
    if unknown := _UNKNOWN.fullmatch(what):
        known = {"": EvalStory, "whole": Expected}.get(field, EvalStep)
        hint = did_you_mean(unknown[1], known.__struct_fields__)
        return InvalidInput(f"{field}.{unknown[1]}".lstrip("."), f"there is no such key{hint}")
    return InvalidInput(field or "story", what)


def _line(text: str, story: int, field: str) -> int:
    """Return the line of a field, or of the table that it would stand in."""
    start, end = _block(text, _HEADER, story, 0, len(text))
    key = field.rpartition(".")[2]
    if step := re.match(r"step\.(\d+)", field):
        start, end = _block(text, _STEP, int(step[1]) - 1, start, end)
    at = start
    for place in re.finditer(rf"^[ \t]*{re.escape(key)}[ \t]*[=.]", text[start:end], re.MULTILINE):
        at = start + place.start()
        break
    return text.count("\n", 0, at) + 1


def _block(
    text: str, header: re.Pattern[str], number: int, start: int, end: int
) -> tuple[int, int]:
    """Return where the table of that number begins and ends in a part of the text."""
    begins = list(_begins(text, header, start, end))
    if number >= len(begins):
        return start, end
    return begins[number], begins[number + 1] if number + 1 < len(begins) else end


def _begins(text: str, header: re.Pattern[str], start: int, end: int) -> Iterator[int]:
    for match in header.finditer(text, start, end):
        yield match.end() - len(match[0].lstrip())
