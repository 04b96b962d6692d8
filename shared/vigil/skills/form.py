"""What a SKILL.md says, and what one may not say (https://agentskills.io/specification). Pure.

Its head has `name` and `description`; other keys of the form are read over. No more of YAML is read
than ``key: value``, texts that go on in indented lines, and lines of a map below a key.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..errors import InvalidInput
from ..texts.glyphs import hidden_in

FILE: Final = "SKILL.md"
NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z", re.ASCII)
NAME_LENGTH_MAX: Final = 64
SCHEMA: Final = {
    "pattern": "^" + NAME.pattern.replace(r"\Z", "$"),
    "maxLength": NAME_LENGTH_MAX,
}
"""Of a name, as documents say it."""
DESCRIPTION_LENGTH_MAX: Final = 1024
KEYS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""Source: the form's specification."""
FENCE: Final = "---"
_LEAVES: Final = re.compile(r"(?:^|[\s\"'`(\[<=/\\])\.\.[/\\]", re.MULTILINE)
_BLOCK: Final = (">", "|", ">-", "|-")
"""How YAML begins a text of several lines."""


class SkillText(msgspec.Struct, frozen=True, kw_only=True):
    """What a SKILL.md says."""

    name: str
    description: str
    """What it does and when to use it: all that is known of it until it's read."""
    body: str


def check_name(name: str) -> str:
    """Return the name of a skill. Raises: InvalidInput."""
    if len(name) > NAME_LENGTH_MAX or not NAME.match(name):
        raise InvalidInput("name", f"must be lower-case letters, digits and '-', is {name[:40]!r}")
    return name


def parse(folder: str, text: str) -> SkillText:
    """Parse the SKILL.md of a folder of that name.

    Raises:
        InvalidInput: naming what is wrong with it.
    """
    check_name(folder)
    if hidden := hidden_in(text.replace("\r\n", "\n")):
        raise _no(f"it holds what a person can't see: U+{ord(hidden):04X}")
    head, body = _parts(text)
    values = _values(head)
    if values.get("name") != folder:
        raise _no(f"the name must be {folder!r}, like the folder's")
    description = values.get("description", "")
    if not 1 <= len(description) <= DESCRIPTION_LENGTH_MAX:
        raise _no(f"there must be a description of at most {DESCRIPTION_LENGTH_MAX} characters")
    if _LEAVES.search(text):
        raise _no("it names what is outside of its folder ('../')")
    return SkillText(name=folder, description=description, body=body.strip())


def _no(reason: str) -> InvalidInput:
    return InvalidInput(FILE, reason)


def _parts(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise _no(f"the first line must be {FENCE!r}")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise _no(f"the head has no end: a line with {FENCE!r} alone")
    return lines[1:end], "\n".join(lines[end + 1 :])


def _values(lines: list[str]) -> dict[str, str]:
    """Return the values of the head.

    >>> _values(["name: x", "description: >", "  Draws", "  charts.", "metadata:", "  by: ann"])
    {'name': 'x', 'description': 'Draws charts.', 'metadata': 'by: ann'}
    """
    values: dict[str, str] = {}
    key = ""
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace():
            if not key:
                raise _no("the head must begin with 'key: value'")
            values[key] = f"{values[key]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon or key not in KEYS or key in values:
            raise _no(f"{line[:40]!r} is no line of a head; keys are {', '.join(KEYS)}, once each")
        values[key] = "" if value in _BLOCK else _unquoted(value)
    return values


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value
