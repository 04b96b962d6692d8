"""The arguments of a call as a person reads them before they decide (SPEC X-2). Pure."""

from __future__ import annotations

import json
from typing import Any

from .glyphs import visible


def arguments(given: dict[str, Any]) -> str:
    """Write the arguments down exactly, one on a line.

    >>> print(arguments({"command": 'echo "a\\nb"', "n": 1}))
    | command: "echo \\"a\\nb\\""
    | n: 1
    """
    lines = [
        f"| {visible(name)}: {visible(json.dumps(value, ensure_ascii=False))}"
        for name, value in given.items()
    ]
    return "\n".join(lines) or "| (none)"
