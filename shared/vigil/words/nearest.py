"""What somebody meant who mistyped a name. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

CUTOFF: Final = 0.6
"""How alike two names are at least, of 1."""


def nearest(name: str, known: Iterable[str], cutoff: float = CUTOFF) -> str:
    """Return the one of the known names that is likely meant; empty: none is near.

    >>> nearest("budgt", ["budget", "gateway"]), nearest("xyz", ["budget"])
    ('budget', '')
    """
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")
