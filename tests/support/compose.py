"""Reads docker-compose.yml: the small part of YAML that the file uses, and nothing else.

Mappings by indentation, lists in one line or one item a line, scalars. Anything else is an error,
so the file can't grow past what its test understands.
"""

from __future__ import annotations

import json
import re
from typing import Any

_ENTRY = re.compile(r"([A-Za-z_][\w-]*):(?: (.*))?")


def parse(text: str) -> dict[str, Any]:
    """Return the document. Raises: ValueError, with the line."""
    lines = [
        (len(line) - len(line.lstrip()), line.strip(), number)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    value, rest = _block(lines, 0)
    if rest:
        raise ValueError(f"line {rest[0][2]}: unexpected indentation")
    assert isinstance(value, dict)
    return value


Lines = list[tuple[int, str, int]]


def _block(lines: Lines, indent: int) -> tuple[Any, Lines]:
    if lines[0][1].startswith("- "):
        items = []
        while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
            items.append(_scalar(lines[0][1][2:], lines[0][2]))
            lines = lines[1:]
        return items, lines
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent:
        match = _ENTRY.fullmatch(lines[0][1])
        if match is None or match[1] in found:
            raise ValueError(f"line {lines[0][2]}: {lines[0][1]!r}")
        number, lines = lines[0][2], lines[1:]
        if match[2] is not None:
            found[match[1]] = _scalar(match[2], number)
        elif lines and lines[0][0] > indent:
            found[match[1]], lines = _block(lines, lines[0][0])
        else:
            found[match[1]] = None
    return found, lines


def _scalar(text: str, number: int) -> Any:
    if text[0] in '["':
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    if text.isdigit():
        return int(text)
    if not re.fullmatch(r"[A-Za-z./][\w./-]*|\d+s", text):
        raise ValueError(f"line {number}: quote {text!r}")
    return text
