"""How a fact is written: its shape, what tells it, and which changes of it are news. Pure.

SHAPE [at WHERE] [news RULE]

one_of[passing, failing] news to failing
count at new news +5                            as a look of a watcher has it
one_of[success, failure] at /run/conclusion     in JSON: of a hook's events, or what is watched
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from ..contracts.board import FactShape
from ..errors import InvalidInput
from .news import checked_rule
from .shape import FACTS_MAX, NAME, check_shapes, named, read_shape, words_of

NONE: Final = "none"
_REST: Final = re.compile(r"(?:\s+at\s+(?P<where>.+?))?(?:\s+news\s+(?P<rule>.+))?\s*", re.DOTALL)


class WantedFact(NamedTuple):
    """A fact as somebody wants it."""

    shape: FactShape
    where: str = ""
    """Where its value is found without a model; empty: a run tells it."""
    rule: str = ""
    """Which changes of it are news, by `news`; empty: as usual for its shape."""


FactsBody = Annotated[
    dict[str, Annotated[str, msgspec.Meta(extra_json_schema={"format": "fact-shape"})]],
    msgspec.Meta(
        extra_json_schema={
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "maxProperties": FACTS_MAX,
        }
    ),
]
"""Name of a fact -> its shape, where a look finds it, and which changes of it are news."""


def read_typed(given: Iterable[str]) -> dict[str, str]:
    """Read facts as they are typed, each ``NAME=SHAPE``; ``none`` alone: none of them.

    >>> read_typed(["new=count[0..99]"]), read_typed(["none"])
    ({'new': 'count[0..99]'}, {})

    Raises:
        InvalidInput: one can't be a fact.
    """
    facts = {} if list(given) == [NONE] else named(given)
    read_wanted(facts)
    return facts


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


def written(facts: Mapping[str, WantedFact]) -> dict[str, str]:
    """Write facts as `read_wanted` takes them, by name."""
    return {
        name: words_of_wanted(words_of(shape), where, rule)
        for name, (shape, where, rule) in facts.items()
    }


def of_work(facts: Mapping[str, WantedFact]) -> dict[str, Any]:
    """Return facts as the work of a row has them, by its fields."""
    return {
        "facts": {name: one.shape for name, one in facts.items()},
        "looked": {name: one.where for name, one in facts.items() if one.where},
        "news": {name: one.rule for name, one in facts.items() if one.rule},
    }


def of_goal(given: Mapping[str, str]) -> dict[str, Any]:
    """Return facts as a goal has them, by its fields: runs tell them. Raises: InvalidInput."""
    facts = read_wanted(given)
    for name, one in facts.items():
        if one.where:
            raise InvalidInput(f"facts.{name[:40]}", "is told by whoever looks: leave out `at`")
    return {"facts": shapes_of_wanted(facts), "news": rules_of_wanted(facts)}


def shapes_of_wanted(facts: Mapping[str, WantedFact]) -> dict[str, FactShape]:
    return {name: one.shape for name, one in facts.items()}


def rules_of_wanted(facts: Mapping[str, WantedFact]) -> dict[str, str]:
    """Return which changes of them are news, where that is named."""
    return {name: one.rule for name, one in facts.items() if one.rule}
