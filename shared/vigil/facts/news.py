"""Which changes of a fact matter: start what waits for them, and are told (FLOW F-10). Pure.

    never            it is shown, and no change of it is news
    always           each change is
    to failing|gone  that to one of these values
    +10, -10         of a number: so much more than its least, or less than its most, since it last
                     was news
    10               of a number: so much more or less than when it last was news

Nothing said: words, days and versions always, numbers and instants never, as those always move.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from ..contracts.board import BoundedNumber, FactShape, IdOf, KnownFact, OneOf, YesNo
from ..errors import InvalidInput
from .shape import MOVING, plain

NEVER: Final = "never"
ALWAYS: Final = "always"
TO: Final = "to "
KNOWN: Final = "never, always, to VALUE|VALUE, or of a number +10, -10 or 10"
_STEP: Final = re.compile(r"([+-]?)(\d{1,9}(?:\.\d{1,3})?)", re.ASCII)


def checked_rule(name: str, rule: str, shape: FactShape) -> str:
    """Return a rule as it is kept: the values of a list as that has them.

    Args:
        name: the fact's, which a refusal names.

    Raises:
        InvalidInput: it is none for that shape.

    >>> checked_rule("ci", "to Failing", OneOf(values=("passing", "failing")))
    'to failing'
    >>> checked_rule("n", "+10", BoundedNumber(least=0, most=99))
    '+10'
    """
    rule = " ".join(rule.split())
    if rule in (NEVER, ALWAYS):
        return rule
    if rule.startswith(TO):
        return f"{TO}{'|'.join(_values(name, rule.removeprefix(TO), shape))}"
    step = _STEP.fullmatch(rule)
    if step is None:
        raise InvalidInput(_field(name), f"{rule[:40]!r} is no rule for news: use {KNOWN}")
    if not isinstance(shape, BoundedNumber):
        raise InvalidInput(_field(name), f"{rule[:40]!r} is a step, and goes with numbers")
    if not Decimal(step[2]):
        raise InvalidInput(_field(name), "has a step of 0: use always")
    return rule


def _values(name: str, given: str, shape: FactShape) -> list[str]:
    known = _listed(shape)
    if not known:
        raise InvalidInput(_field(name), "'to' goes with yes_no, one_of and id_of")
    by_plain = {plain(one): one for one in known}
    found = [by_plain.get(plain(one), "") for one in given.split("|")]
    if not all(found):
        raise InvalidInput(_field(name), f"'to' must name values of it: {', '.join(known)}")
    return list(dict.fromkeys(found))


def _listed(shape: FactShape) -> tuple[str, ...]:
    match shape:
        case YesNo():
            return ("yes", "no")
        case OneOf(values=values) | IdOf(values=values):
            return values
        case _:
            return ()


def check_rules(rules: Mapping[str, str], shapes: Mapping[str, FactShape]) -> None:
    """Raises: InvalidInput: a rule is of no fact that there is, or none for its shape."""
    for name, rule in rules.items():
        if name not in shapes:
            raise InvalidInput(_field(name), "has a rule for news, and no shape")
        checked_rule(name, rule, shapes[name])


def is_news(rule: str, before: KnownFact | None, after: KnownFact) -> bool:
    """Whether a change is news. From where a step counts is in `after.told` (`counted_from`).

    Args:
        rule: empty: none was named.
        before: None: nothing was known of it, or it had another shape.
    """
    if before is not None and before.value == after.value:
        return False
    if rule in ("", NEVER, ALWAYS):
        return rule == ALWAYS or (not rule and not isinstance(after.shape, MOVING))
    if rule.startswith(TO):
        return after.value in rule.removeprefix(TO).split("|")
    sign, step = _STEP.fullmatch(rule).groups()  # type: ignore[union-attr]  # as it was checked
    if before is None or not after.told:
        return False
    moved = Decimal(after.value) - Decimal(after.told)
    far = {"+": moved, "-": -moved, "": abs(moved)}[sign]
    return far >= Decimal(step)


def has_steps(rule: str) -> bool:
    """Whether a rule needs to know from where on its fact moved."""
    return _STEP.fullmatch(rule) is not None


def counted_from(rule: str, told: str, value: str) -> str:
    """Return from where the next step counts after a value that was no news: what went back has to
    come all the way again, and is news then, as a queue that fills up each night.

    Args:
        rule: one with a step.
        told: from where it counted until now; empty: from nowhere yet.

    >>> [counted_from(rule, "30", "0") for rule in ("+10", "-10", "10")]
    ['0', '30', '30']
    """
    further = {"+": min, "-": max}.get(rule[0])
    if not told or further is None:
        return told or value
    return further(told, value, key=Decimal)


def _field(name: str) -> str:
    return f"facts.{name[:40]}"
