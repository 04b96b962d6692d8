"""Values shown to a person who decides about them: as JSON in which nothing can hide."""

from __future__ import annotations

import json as text_json
import unicodedata
from typing import Any, Final

_SHOWN: Final = ("L", "M", "N", "P", "S")
"""First letters of the Unicode categories that a terminal shows as they are."""


def exact(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON in which nothing can hide.

    >>> print(exact({"command": "rm -rf \x1b[2Kx \u202e é"}))
    {"command": "rm -rf \u001b[2Kx \u202e é"}
    """
    text = text_json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(char if _is_plain(char) else _escaped(char) for char in text)


def _is_plain(char: str) -> bool:
    return char in " \n" or unicodedata.category(char)[0] in _SHOWN


def _escaped(char: str) -> str:
    return text_json.dumps(char)[1:-1]
