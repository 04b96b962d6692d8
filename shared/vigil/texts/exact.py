"""Values shown to a person who decides about them (SPEC X-2): JSON that hides nothing. Pure."""

from __future__ import annotations

import json
from typing import Any

from .glyphs import visible


def exact(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON in which nothing can hide.

    >>> print(exact({"command": "rm -rf \x1b[2Kx \u202e é"}))
    {"command": "rm -rf \u001b[2Kx \u202e é"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "\n".join(visible(line) for line in text.split("\n"))


def arguments(given: dict[str, Any]) -> str:
    """Write the arguments of a call down exactly, one on a line.

    >>> print(arguments({"command": 'echo "a\\nb"', "n": 1}))
    | command: "echo \\"a\\nb\\""
    | n: 1
    """
    lines = [f"| {visible(name)}: {exact(value)}" for name, value in given.items()]
    return "\n".join(lines) or "| (none)"
