"""Cutting texts to what a story quotes. Pure."""

from __future__ import annotations

from typing import Final

TEXT_LENGTH_MAX: Final = 300
"""Characters of a text that a story quotes."""


def clip(text: str, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Join the lines of a text and cut what is too long.

    >>> clip("a  b\\nc", 10), clip("abcdef", 4)
    ('a b c', 'abc…')
    """
    line = " ".join(text[: 4 * length_max].split())
    return line if len(line) <= length_max else line[: length_max - 1] + "…"
