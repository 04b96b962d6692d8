"""What a conversation is called as long as nobody named it, and whether a search means it. Pure."""

from __future__ import annotations

from typing import Final

from vigil.words.plain import one_line

LENGTH_MAX: Final = 60
"""Characters of a title that is made of first words."""


def title_of(text: str) -> str:
    """Return the first words of a text, in one line, without marks of Markdown.

    >>> title_of("My basil is called Bruno.\\nIt stands at the window.")
    'My basil is called Bruno. It stands at the window.'
    >>> title_of("**Plan** for the garden:\\n- basil")
    'Plan for the garden: basil'
    >>> title_of("word " * 20), len(title_of("x" * 100))
    ('word word word word word word word word word word word word…', 61)
    """
    line = one_line(text[: 8 * LENGTH_MAX])
    if len(line) <= LENGTH_MAX:
        return line
    whole, _, _ = line[: LENGTH_MAX + 1].rpartition(" ")
    return f"{whole or line[:LENGTH_MAX]}…"


def is_found(words: str, text: str) -> bool:
    """Return whether a text has each of the words, or begins of them, whatever their case.

    >>> is_found("BASIL bruno", "My basil is called Bruno."), is_found("basil mint", "My basil")
    (True, False)
    """
    folded = text.casefold()
    return all(one in folded for one in words.casefold().split())
