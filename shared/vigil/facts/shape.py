"""How the shape of a fact is written, and how much one can tell (FLOW F-9). Pure.

    ci = one_of[passing, failing, running]      open_issues = count[0..999]
    is_open = yes_no                            load = number[0.0..400.0 %]
    failing_since = instant                     release = version
    due = day                                   ticket = id_of[VIG-1, VIG-2]

Names, lists and units are the person's or the configuration's; a value is one of a closed set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import product
from math import log2
from typing import Final

from ..contracts.board import (
    ADay,
    AnInstant,
    BoundedNumber,
    FactShape,
    IdOf,
    OneOf,
    VersionNumber,
    YesNo,
)
from ..errors import InvalidInput
from ..texts.glyphs import is_printable

FACTS_MAX: Final = 8
"""Of one source."""
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
WORD: Final = re.compile(r"\w(?:[\w .+/-]{0,38}\w)?")
"""One of a list: a word or a few, on one line."""
ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/#-]{0,62}[A-Za-z0-9])?")
UNIT: Final = re.compile(r"[^\W\d_]{1,12}|[%°‰]|°[CF]")
WORDS_MAX: Final = 20
IDS_MAX: Final = 50
LENGTH_MAX: Final = 4_000
"""Characters of a shape as it's written."""
MOVING: Final = (BoundedNumber, AnInstant)
"""Shapes of what changes all the time: that is shown, and no news."""
DECIMALS_MAX: Final = 3
LIMIT: Final = 10**9
"""Of a number, in steps."""
COUNT_MAX: Final = 999
"""Of a count for which nothing else is said."""
INSTANT_WITHIN: Final = timedelta(days=400)
DAY_WITHIN: Final = timedelta(days=3_660)
VERSION_LENGTH_MAX: Final = 12
PARTS_MAX: Final = 4
PART_LENGTH_MAX: Final = 4
_PLAIN: Final[dict[str, FactShape]] = {
    "yes_no": YesNo(),
    "yes/no": YesNo(),
    "instant": AnInstant(),
    "day": ADay(),
    "version": VersionNumber(),
    "count": BoundedNumber(least=0, most=COUNT_MAX),
}
_SHAPE: Final = re.compile(r"(one_of|id_of|count|number)\s*\[(.*)\]", re.DOTALL)
_NUMBER: Final = r"-?\d{1,9}(?:\.\d{1,3})?"
_BOUNDS: Final = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})(?:\s+(\S+))?\s*")
KNOWN: Final = (
    "yes_no, one_of[a, b], id_of[A-1, A-2], count[0..999], number[-40.0..60.0 °C], instant, day "
    "or version"
)


def read_shape(name: str, text: str) -> FactShape:
    """Read a shape as people write it.

    Args:
        name: the fact's, which a refusal names.

    Raises:
        InvalidInput: it is none; the reason says what there is.

    >>> read_shape("ci", "one_of[passing, failing]")
    OneOf(values=('passing', 'failing'))
    >>> read_shape("load", "number[0.0..1.5]")
    BoundedNumber(least=0, most=15, decimals=1, unit='')
    """
    field, given = _field(name), text.strip()
    if len(given) > LENGTH_MAX:
        raise InvalidInput(field, f"may have {LENGTH_MAX} characters, has {len(given)}")
    plain = _PLAIN.get(given)
    if plain is not None:
        return plain
    found = _SHAPE.fullmatch(given)
    if found is None:
        raise InvalidInput(field, f"{given[:40]!r} is no shape: use {KNOWN}")
    kind, inside = found.groups()
    if kind in ("count", "number"):
        return checked(name, _number(field, inside))
    values = tuple(one.strip() for one in inside.split(","))
    return checked(name, OneOf(values=values) if kind == "one_of" else IdOf(values=values))


def _number(field: str, inside: str) -> BoundedNumber:
    found = _BOUNDS.fullmatch(inside)
    if found is None:
        raise InvalidInput(field, f"{inside[:40]!r} are no bounds: write them as 0..999, or 0..9 %")
    least, most, unit = found.groups()
    decimals = max(len(one.partition(".")[2]) for one in (least, most))
    return BoundedNumber(
        least=_steps(least, decimals),
        most=_steps(most, decimals),
        decimals=decimals,
        unit=unit or "",
    )


def _steps(number: str, decimals: int) -> int:
    whole, _, part = number.partition(".")
    return int(whole + part.ljust(decimals, "0"))


def checked(name: str, shape: FactShape) -> FactShape:
    """Return a shape that a fact may have. Raises: InvalidInput."""
    field = _field(name)
    match shape:
        case OneOf(values=values):
            _check_list(field, values, WORD, WORDS_MAX, "a word, or a few")
        case IdOf(values=values):
            _check_list(field, values, ID, IDS_MAX, "an id of letters, digits and ._:/#-")
        case BoundedNumber():
            if not -LIMIT <= shape.least < shape.most <= LIMIT:
                raise InvalidInput(field, f"must have bounds from {-LIMIT} to {LIMIT}, least first")
            if not 0 <= shape.decimals <= DECIMALS_MAX:
                raise InvalidInput(field, f"may have {DECIMALS_MAX} decimals")
            if shape.unit and not UNIT.fullmatch(shape.unit):
                raise InvalidInput(field, f"{shape.unit[:20]!r} is no unit: up to 12 letters, or %")
        case _:
            pass
    return shape


def _check_list(
    field: str, values: tuple[str, ...], form: re.Pattern[str], most: int, what: str
) -> None:
    if not 2 <= len(values) <= most:
        raise InvalidInput(field, f"must list 2 to {most}, lists {len(values)}")
    for value in values:
        if not form.fullmatch(value) or not is_printable(value):
            raise InvalidInput(field, f"{value[:40]!r} must be {what}")
    if len({plain(one) for one in values}) < len(values):
        raise InvalidInput(field, "lists the same twice")


def plain(word: str) -> str:
    """Return what of a word of a list counts: models write `Not Running` for `not_running`.

    >>> plain("Not  Running") == plain("not_running")
    True
    """
    return re.sub(r"[\s_-]+", " ", word.strip().casefold())


def read_shapes(given: Mapping[str, str]) -> dict[str, FactShape]:
    """Read the facts that a source is to have, by name. Raises: InvalidInput."""
    return check_shapes({name: read_shape(name, text) for name, text in given.items()})


def check_shapes(shapes: dict[str, FactShape]) -> dict[str, FactShape]:
    """Return facts that a source may have. Raises: InvalidInput."""
    if len(shapes) > FACTS_MAX:
        raise InvalidInput("facts", f"may be {FACTS_MAX}, are {len(shapes)}")
    for name, shape in shapes.items():
        if not NAME.fullmatch(name):
            what = "must be a small letter, then up to 31 small letters, digits and _"
            raise InvalidInput("facts", f"{name[:40]!r} {what}")
        checked(name, shape)
    return shapes


def named(given: Iterable[str]) -> dict[str, str]:
    """Part facts as a command line has them. Raises: InvalidInput.

    >>> named(["ci=one_of[passing, failing]", "open = count"])
    {'ci': 'one_of[passing, failing]', 'open': 'count'}
    """
    found: dict[str, str] = {}
    for one in given:
        name, is_parted, shape = one.partition("=")
        name = name.strip()
        if not is_parted:
            raise InvalidInput("facts", f"{one[:40]!r} must be NAME=SHAPE, as ci=yes_no")
        if name in found:
            raise InvalidInput("facts", f"{name[:40]!r} is named twice")
        found[name] = shape.strip()
    return found


def words_of(shape: FactShape) -> str:
    """Write a shape as `read_shape` takes it.

    >>> words_of(BoundedNumber(least=-5, most=15, decimals=1, unit="°C"))
    'number[-0.5..1.5 °C]'
    >>> words_of(YesNo()), words_of(read_shape("n", "count"))
    ('yes_no', 'count[0..999]')
    """
    match shape:
        case OneOf(values=values) | IdOf(values=values):
            return f"{shape.__struct_config__.tag}[{', '.join(values)}]"
        case BoundedNumber(decimals=decimals, least=least):
            kind = "number" if least or decimals else "count"
            bounds = f"{number_of(least, decimals)}..{number_of(shape.most, decimals)}"
            return f"{kind}[{bounds}{f' {shape.unit}' if shape.unit else ''}]"
        case _:
            return str(shape.__struct_config__.tag)


def number_of(steps: int, decimals: int) -> str:
    """Write a number that is given in steps of its last decimal.

    >>> number_of(-5, 1), number_of(12, 0)
    ('-0.5', '12')
    """
    digits = f"{abs(steps):0{decimals + 1}d}"
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    return f"{'-' if steps < 0 else ''}{whole}{'.' if part else ''}{part}"


def _versions() -> int:
    found = 0
    for count in range(1, PARTS_MAX + 1):
        for lengths in product(range(1, PART_LENGTH_MAX + 1), repeat=count):
            if sum(lengths) + count - 1 <= VERSION_LENGTH_MAX:
                found += 10 ** sum(lengths)
    return found


VERSIONS: Final = _versions()
INSTANTS: Final = 2 * int(INSTANT_WITHIN.total_seconds() // 60) + 1
DAYS: Final = 2 * DAY_WITHIN.days + 1


def choices(shape: FactShape) -> int:
    """Return how many values a fact of that shape may have at one time.

    >>> choices(YesNo()), choices(read_shape("n", "count")), choices(ADay())
    (2, 1000, 7321)
    """
    match shape:
        case YesNo():
            return 2
        case OneOf(values=values) | IdOf(values=values):
            return len(values)
        case BoundedNumber(least=least, most=most):
            return most - least + 1
        case AnInstant():
            return INSTANTS
        case ADay():
            return DAYS
        case VersionNumber():
            return VERSIONS


def bits(shape: FactShape) -> float:
    """Return how many bits a value of that shape tells at most.

    >>> bits(YesNo()), round(bits(VersionNumber()), 1)
    (1.0, 36.7)
    """
    return log2(choices(shape))


def bits_of_all(shapes: Iterable[FactShape]) -> float:
    """Return how many bits facts tell together at most."""
    return sum(map(bits, shapes))


def _field(name: str) -> str:
    return f"facts.{name[:40]}"
