"""What somebody meant who mistyped a name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

CUTOFF: Final = 0.6
"""How alike two names are at least, of 1."""
LISTED_MAX: Final = 8


def nearest(name: str, known: Iterable[str], cutoff: float = CUTOFF) -> str:
    """Return the one of the known names that is likely meant; empty: none is near.

    >>> nearest("budgt", ["budget", "gateway"]), nearest("xyz", ["budget"])
    ('budget', '')
    """
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return how a refusal of a name goes on: with the nearest one; empty if none is near.

    >>> did_you_mean("budgt", ["budget", "gateway"])
    '; did you mean budget?'
    """
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def meant(name: str, known: Collection[str]) -> str:
    """Return how it goes on, with those that there are if none is near.

    >>> meant("budgt", ["budget", "gateway"]), meant("xyz", ["budget", "gateway"])
    ('; did you mean budget?', '; there is: budget, gateway')
    >>> meant("xyz", [])
    ''
    """
    if hint := did_you_mean(name, known):
        return hint
    more = ", …" * (len(known) > LISTED_MAX)
    return f"; there is: {', '.join(list(known)[:LISTED_MAX])}{more}" if known else ""
