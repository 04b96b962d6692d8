"""Whether a value fits a fact's shape, and how it is written then (FLOW F-9). Pure.

What is written is made anew from the shape: a word out of the list, digits, a day. Nothing of what
was given gets into it otherwise, nor into a refusal, so no text of an outsider's does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, Final

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
from .shape import (
    DAY_WITHIN,
    INSTANT_WITHIN,
    PART_LENGTH_MAX,
    PARTS_MAX,
    VERSION_LENGTH_MAX,
    number_of,
    plain,
    words_of,
)

GIVEN_LENGTH_MAX: Final = 100
"""Characters of what is given: no value has as many."""
_YES: Final = frozenset({"yes", "true"})
_NO: Final = frozenset({"no", "false"})
_NUMBER: Final = re.compile(r"[+-]?\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_VERSION: Final = re.compile(
    rf"v?(\d{{1,{PART_LENGTH_MAX}}}(?:\.\d{{1,{PART_LENGTH_MAX}}}){{0,{PARTS_MAX - 1}}})", re.ASCII
)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MINUTE: Final = "%Y-%m-%dT%H:%MZ"


def fit(name: str, given: object, shape: FactShape, now: datetime) -> str:
    """Return a value as it is written.

    Args:
        name: the fact's.
        now: aware UTC: instants and days lie around it.

    Raises:
        InvalidInput: it doesn't fit; the reason, for who told it, has no word of what was given.

    >>> now = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
    >>> fit("ci", "Failing", OneOf(values=("passing", "failing")), now)
    'failing'
    >>> fit("since", "2026-11-20T02:10:59+01:00", AnInstant(), now)
    '2026-11-20T01:10Z'
    """
    if isinstance(given, str):
        given = given.strip() if len(given) <= GIVEN_LENGTH_MAX else ""
    found = _fitted(given, shape, now)
    if found is None:
        raise InvalidInput(name, _reason(shape))
    return found


def fits(value: str, shape: FactShape, at: datetime) -> bool:
    """Whether something is a value of that shape, as it was written at an instant."""
    return _fitted(value, shape, at) == value


def _fitted(given: object, shape: FactShape, now: datetime) -> str | None:
    return _READ[type(shape)](given, shape, now)


def _is_int(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _yes_no(given: object, _shape: YesNo, _now: datetime) -> str | None:
    if isinstance(given, bool):
        return "yes" if given else "no"
    word = given.casefold() if isinstance(given, str) else ""
    return "yes" if word in _YES else "no" if word in _NO else None


def _word(given: object, shape: OneOf, _now: datetime) -> str | None:
    wanted = plain(given) if isinstance(given, str) else None
    return next((one for one in shape.values if plain(one) == wanted), None)


def _id(given: object, shape: IdOf, _now: datetime) -> str | None:
    wanted = str(given) if _is_int(given) else given
    return next((one for one in shape.values if one == wanted), None)


def _number(given: object, shape: BoundedNumber, _now: datetime) -> str | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        written = given.removesuffix(shape.unit).rstrip() if shape.unit else given
        if not _NUMBER.fullmatch(written):
            return None
    elif isinstance(given, int | float) and math.isfinite(given):
        written = str(given)
    else:
        return None
    try:
        scaled = Decimal(written).scaleb(shape.decimals)
        steps = int(scaled.to_integral_value(rounding=ROUND_HALF_EVEN))
    except (InvalidOperation, ValueError, OverflowError):
        return None
    return number_of(steps, shape.decimals) if shape.least <= steps <= shape.most else None


def _instant(given: object, _shape: AnInstant, now: datetime) -> str | None:
    at = _utc(given) if isinstance(given, str) else None
    if at is None:
        return None
    at = at.replace(second=0, microsecond=0)
    return at.strftime(_MINUTE) if abs(at - _minute(now)) <= INSTANT_WITHIN else None


def _utc(text: str) -> datetime | None:
    """Return the instant that a text with an offset names, in UTC; None: it names none."""
    try:
        at = datetime.fromisoformat(text)
        return None if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _minute(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(second=0, microsecond=0)


def _day(given: object, _shape: ADay, now: datetime) -> str | None:
    """A day, or that of an instant in UTC: feeds, pages and most JSON tell no day alone."""
    if not isinstance(given, str):
        return None
    day = _date(given)
    if day is None:
        return None
    within: timedelta = abs(day - now.astimezone(UTC).date())
    return day.isoformat() if within <= DAY_WITHIN else None


def _date(text: str) -> date | None:
    if not _DAY.fullmatch(text):
        at = _utc(text)
        return None if at is None else at.date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _version(given: object, _shape: VersionNumber, _now: datetime) -> str | None:
    found = _VERSION.fullmatch(given) if isinstance(given, str) else None
    return found[1] if found is not None and len(found[1]) <= VERSION_LENGTH_MAX else None


_READ: Final[dict[type[FactShape], Callable[[object, Any, datetime], str | None]]] = {
    YesNo: _yes_no,
    OneOf: _word,
    IdOf: _id,
    BoundedNumber: _number,
    AnInstant: _instant,
    ADay: _day,
    VersionNumber: _version,
}


def _reason(shape: FactShape) -> str:
    match shape:
        case AnInstant():
            return "must be an instant with its offset, as 2026-11-20T02:30Z, within 400 days"
        case ADay():
            return "must be a day, as 2026-11-20, or an instant with its offset, within 10 years"
        case VersionNumber():
            return "must be a version of up to four numbers, as 1.24.3, at most 12 characters"
        case YesNo():
            return "must be yes or no"
        case _:
            return f"must be as {words_of(shape)} says"


def schema_of(shape: FactShape) -> dict[str, Any]:
    """Return the JSON Schema by which a model gives a value of that shape.

    >>> schema_of(YesNo())
    {'type': 'string', 'enum': ['yes', 'no']}
    """
    match shape:
        case YesNo():
            return {"type": "string", "enum": ["yes", "no"]}
        case OneOf(values=values) | IdOf(values=values):
            return {"type": "string", "enum": list(values)}
        case BoundedNumber(decimals=decimals):
            kind = "number" if decimals else "integer"
            return {"type": kind, "description": words_of(shape)}
        case _:
            return {"type": "string", "description": _reason(shape).removeprefix("must be ")}
