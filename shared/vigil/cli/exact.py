"""Values shown to a person who decides about them: as JSON in which nothing can hide."""

from __future__ import annotations

import json as text_json
from typing import Any

from ..texts.glyphs import visible


def exact(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON in which nothing can hide.

    >>> print(exact({"command": "rm -rf \x1b[2Kx \u202e é"}))
    {"command": "rm -rf \u001b[2Kx \u202e é"}
    """
    text = text_json.dumps(value, ensure_ascii=False, indent=indent)
    return "\n".join(visible(line) for line in text.split("\n"))
