"""How a fact is written: its shape, what tells it, and which changes of it are news. Pure.

SHAPE [at WHERE] [news RULE]

one_of[passing, failing] news to failing
count at new news +5                            as a look of a watcher has it
one_of[success, failure] at /run/conclusion     in JSON: of a hook's events, or what is watched
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..contracts.board import FactShape
from .news import checked_rule
from .shape import check_shapes, read_shape

_REST: Final = re.compile(r"(?:\s+at\s+(?P<where>.+?))?(?:\s+news\s+(?P<rule>.+))?\s*", re.DOTALL)


class WantedFact(NamedTuple):
    """A fact as somebody wants it."""

    shape: FactShape
    where: str = ""
    """Where its value is found without a model; empty: a run tells it."""
    rule: str = ""
    """Which changes of it are news, by `news`; empty: as usual for its shape."""


def read_wanted(given: Mapping[str, str]) -> dict[str, WantedFact]:
    """Read the facts that a source is to have, by name. Raises: InvalidInput.

    >>> read_wanted({"new": "count[0..99] at new news +5"})["new"][1:]
    ('new', '+5')
    """
    found = {name: _one(name, text.strip()) for name, text in given.items()}
    check_shapes({name: one.shape for name, one in found.items()})
    return found


def _one(name: str, text: str) -> WantedFact:
    end = text.find("]") + 1 or len(text.split(maxsplit=1)[0] if text else "")
    rest = _REST.fullmatch(text[end:])
    if rest is None:
        return WantedFact(read_shape(name, text))
    shape, rule = read_shape(name, text[:end]), rest["rule"] or ""
    return WantedFact(
        shape, (rest["where"] or "").strip(), rule and checked_rule(name, rule, shape)
    )


def words_of_wanted(shape: str, where: str, rule: str) -> str:
    """Write a fact as `read_wanted` takes it.

    >>> words_of_wanted("count[0..99]", "new", "+5")
    'count[0..99] at new news +5'
    """
    return f"{shape}{f' at {where}' if where else ''}{f' news {rule}' if rule else ''}"


def of_work(facts: Mapping[str, WantedFact]) -> dict[str, Any]:
    """Return facts as the work of a row has them, by its fields."""
    return {
        "facts": {name: one.shape for name, one in facts.items()},
        "looked": {name: one.where for name, one in facts.items() if one.where},
        "news": {name: one.rule for name, one in facts.items() if one.rule},
    }


def shapes_of_wanted(facts: Mapping[str, WantedFact]) -> dict[str, FactShape]:
    return {name: one.shape for name, one in facts.items()}


def rules_of_wanted(facts: Mapping[str, WantedFact]) -> dict[str, str]:
    """Return which changes of them are news, where that is named."""
    return {name: one.rule for name, one in facts.items() if one.rule}
