"""The fields of a cron expression: what people write beyond cron(8), and what would mislead.

Days and months may go over their end (`Mon-Sun`, `Nov-Feb`, `22-6`), and `?` is `*`, as in other
programs. What is left is for `cronsim`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Field(NamedTuple):
    """What a field may hold."""

    name: str
    """As `cronsim` calls it."""
    least: int
    most: int
    takes: str
    names: tuple[str, ...] = ()
    """Of its values, from the least on."""
    unit: str = ""
    """What `vigil cron add --every` calls it, if it does."""


SHORT: Final = "SUN MON TUE WED THU FRI SAT", "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
DAYS, MONTHS = (tuple(names.split()) for names in SHORT)
FIELDS: Final = (
    Field("second", 0, 59, "0-59", unit="s"),
    Field("minute", 0, 59, "0-59", unit="m"),
    Field("hour", 0, 23, "0-23", unit="h"),
    Field("day-of-month", 1, 31, "1-31, L or LW", unit="d"),
    Field("month", 1, 12, "1-12 or JAN-DEC", MONTHS),
    Field("day-of-week", 0, 6, "0-7 or SUN-SAT, 5L or 5#2", DAYS),
)
SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY = FIELDS
_RANGE: Final = re.compile(r"(\w+)-(\w+)(/\d+)?", re.ASCII)
_STEP: Final = re.compile(r"(\*|\w+|\w+-\w+)/(\d{1,9})", re.ASCII)


def split(expression: str) -> list[str]:
    """Return the six fields of an expression, as `cronsim` reads them; of five the second is 0.

    >>> split("0 9 ? * mon-sun"), split("@hourly")
    (['0', '0', '9', '*', '*', '1-7'], ['0', '0', '*', '*', '*', '*'])
    >>> split("0 22-6 * nov-feb 6-1")
    ['0', '0', '22-23,0-6', '*', '11-12,1-2', '6,0-1']
    """
    text = expression.strip()
    parts = NICKNAMES.get(text.lower(), text).upper().split()
    if len(parts) == 5:
        parts.insert(0, "0")
    if len(parts) != 6:
        return parts
    return [_plain(field, part) for field, part in zip(FIELDS, parts, strict=True)]


def _plain(field: Field, text: str) -> str:
    if text == "?" and field in (DAY, WEEKDAY):
        return "*"
    return ",".join(_term(field, term) for term in text.split(","))


def _term(field: Field, text: str) -> str:
    """Return a range that goes over the end as two that don't; with a step, its values."""
    match = _RANGE.fullmatch(text)
    start, end = (_value(field, match[n]) for n in (1, 2)) if match else (None, None)
    if match is None or start is None or end is None:
        return text
    if field is WEEKDAY and end == 0 < start:
        end = 7  # until Sunday
    if field is WEEKDAY and start == 7 != end:
        start = 0
    step = match[3] or ""
    if start <= end:
        return f"{start}-{end}{step}"
    if not step:
        return f"{_run(start, field.most)},{_run(field.least, end)}"
    values = [*range(start, field.most + 1), *range(field.least, end + 1)]
    return ",".join(map(str, values[:: max(int(step[1:]), 1)]))


def _run(start: int, end: int) -> str:
    return f"{start}-{end}" if start < end else f"{start}"


def _value(field: Field, text: str) -> int | None:
    """Return a value by its name or number; None: it is none."""
    if text in field.names:
        return field.names.index(text) + field.least
    most = 7 if field is WEEKDAY else field.most
    return int(text) if text.isdigit() and field.least <= int(text) <= most else None


def misled(parts: Sequence[str]) -> str:
    """Say of a step that is longer than its field what it doesn't do; empty: there is none.

    >>> misled(split("*/90 * * * *"))
    "'*/90' is no step of the minute, of which there are 60: it would be due once an hour; use \
--every 90m (interval_s: 5400)"
    >>> misled(split("*/60 */6 * * *"))
    ''
    """
    for field, part in zip(FIELDS, parts, strict=True):
        size = field.most - field.least + 1
        for match in filter(None, map(_STEP.fullmatch, part.split(","))):
            if int(match[2]) > size:
                return _advice(field, match[0], int(match[2]), size)
    return ""


def _advice(field: Field, term: str, step: int, size: int) -> str:
    around = {"second": "minute", "minute": "hour", "hour": "day", "day-of-month": "month"}
    period = around.get(field.name, "year" if field is MONTH else "week")
    once = f"it would be due once {'an' if period == 'hour' else 'a'} {period}"
    said = f"{term!r} is no step of the {field.name}, of which there are {size}: {once}"
    if not field.unit:
        return said
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400}[field.unit] * step
    return f"{said}; use --every {step}{field.unit} (interval_s: {seconds})"


def values_of(field: Field, part: str) -> frozenset[int] | None:
    """Return the values that a field stands for; None: it has other things in it, as L.

    >>> sorted(values_of(HOUR, "*/6") or ()), values_of(DAY, "L")
    ([0, 6, 12, 18], None)
    """
    found: set[int] = set()
    for term in part.split(","):
        head, _, step = term.partition("/")
        start, dash, end = head.partition("-")
        first = field.least if head == "*" else _value(field, start)
        last = _value(field, end or start)
        if head == "*" or (step and not dash):
            last = 7 if field is WEEKDAY else field.most
        if first is None or last is None or (step and not step.isdigit()) or step == "0":
            return None
        found |= {
            one % 7 if field is WEEKDAY else one
            for one in range(first, last + 1)[:: int(step or 1)]
        }
    return frozenset(found)


def is_whole(field: Field, part: str) -> bool:
    """Whether a field stands for all of its values, however it is written.

    >>> is_whole(HOUR, "0-23"), is_whole(WEEKDAY, "1-7"), is_whole(DAY, "*/2")
    (True, True, False)
    """
    found = values_of(field, part)
    return found is not None and len(found) == field.most - field.least + 1
