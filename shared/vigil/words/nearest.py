"""What somebody meant who mistyped a name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, Final, get_args

from msgspec.inspect import is_struct_type

CUTOFF: Final = 0.6
"""How alike two names are at least, of 1."""
LISTED_MAX: Final = 8
_UNKNOWN: Final = re.compile(r"unknown field `([^`]{1,60})`")


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
    '; there is: none'
    """
    if hint := did_you_mean(name, known):
        return hint
    return listed(known)


def listed(known: Collection[str]) -> str:
    """Return how a refusal goes on that lists what there is.

    >>> listed(["budget", "gateway"])
    '; there is: budget, gateway'
    """
    more = ", …" * (len(known) > LISTED_MAX)
    return f"; there is: {', '.join(list(known)[:LISTED_MAX]) or 'none'}{more}"


def meant_field(problem: str, kind: Any) -> str:
    """Return what to add to a problem that names a field which there isn't: the one that is near.
    Empty if it was added before.

    Args:
        kind: the type of the section, or of a section of sections.
    """
    found = _UNKNOWN.search(problem)
    structs = [one for one in (kind, *get_args(kind)) if is_struct_type(one)]
    if found is None or not structs or problem.endswith("?"):
        return ""
    return did_you_mean(found[1], structs[-1].__struct_fields__)
