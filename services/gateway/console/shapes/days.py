"""Days of the week and a time, as they are clicked, and cron that says the same. Pure.

What cron can say besides is left to who writes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WORKDAYS: Final = frozenset(range(1, 6))
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAILY: Final = re.compile(r"([0-5]?\d) ([01]?\d|2[0-3]) \* \* ([0-7*,-]+)", re.ASCII)
_PART: Final = re.compile(r"([0-7])(?:-([0-7]))?", re.ASCII)


class ClickedDays(msgspec.Struct, frozen=True, kw_only=True):
    """On which days, and when; no days: something else than days and a time is meant."""

    days: frozenset[int] = frozenset()
    """1 is Monday, 7 Sunday."""
    time: str = ""
    """As `08:30`."""


def clicked_of(expression: str) -> ClickedDays:
    """Return the days and the time that an expression means, if it means nothing else.

    >>> clicked_of("30 8 * * 1-5") == ClickedDays(days=WORKDAYS, time="08:30")
    True
    >>> sorted(clicked_of("0 9 * * *").days), sorted(clicked_of("0 9 * * 0,6").days)
    ([1, 2, 3, 4, 5, 6, 7], [6, 7])
    >>> clicked_of("*/5 * * * *"), clicked_of("0 9 1 * *"), clicked_of("0 9 * * 5-1")
    (ClickedDays(days=frozenset(), time=''), ClickedDays(days=frozenset(), time=''), \
ClickedDays(days=frozenset(), time=''))
    """
    found = _DAILY.fullmatch(" ".join(expression.split()))
    days = _days_in(found[3]) if found else frozenset()
    if not found or not days:
        return ClickedDays()
    return ClickedDays(days=days, time=f"{int(found[2]):02}:{int(found[1]):02}")


def _days_in(text: str) -> frozenset[int]:
    if text == "*":
        return frozenset(range(1, 8))
    days: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            return frozenset()
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            return frozenset()
        days |= {one or 7 for one in range(first, last + 1)}
    return frozenset(days)


def cron_of(days: Collection[int], time: str) -> str:
    """Return the expression for days and a time; empty: there is no such time, or no day.

    >>> cron_of(WORKDAYS, "08:30"), cron_of({7, 1}, "9:05"), cron_of(range(1, 8), "00:00")
    ('30 8 * * 1-5', '5 9 * * 0,1', '0 0 * * *')
    >>> cron_of(WORKDAYS, "25:00"), cron_of((), "08:30")
    ('', '')
    """
    found = _TIME.fullmatch(time.strip())
    if found is None or not days:
        return ""
    wanted = sorted({one % 7 for one in days})
    if len(wanted) == len(DAYS):
        named = "*"
    elif len(wanted) > 2 and wanted == list(range(wanted[0], wanted[-1] + 1)):
        named = f"{wanted[0]}-{wanted[-1]}"
    else:
        named = ",".join(map(str, wanted))
    return f"{int(found[2])} {int(found[1])} * * {named}"
