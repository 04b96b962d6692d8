"""When things happen in a story: how long, and at which moment of the person's wall clock. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from ..errors import InvalidInput
from ..zones import moments
from ..zones.wall import instant_of

_UNITS_S: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DURATION: Final = re.compile(r"(\d{1,5}|an?|one|two|three)\s+(second|minute|hour|day|week)s?")
_WORDS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
LONGEST: Final = timedelta(days=60)
"""A story is no longer: what services keep for so long is gone by then."""
ANY: Final = datetime(2026, 11, 2, tzinfo=UTC)
"""After which a moment is looked for that is only checked."""


def duration(field: str, text: str) -> timedelta:
    """Return how long a text says.

    >>> duration("wait", "two hours"), duration("wait", "90 seconds")
    (datetime.timedelta(seconds=7200), datetime.timedelta(seconds=90))
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInput(field, f"{text!r} is no time such as '2 hours' or '90 seconds'")
    number = _WORDS.get(match[1]) or int(match[1])
    found = timedelta(seconds=number * _UNITS_S[match[2]])
    if not timedelta() < found <= LONGEST:
        raise InvalidInput(field, f"must be more than nothing and at most {LONGEST.days} days")
    return found


def moment(field: str, text: str, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first such moment after an instant, by the wall clock of a zone, as UTC.

    Args:
        text: ``07:00``, ``tomorrow 07:00`` or ``Tuesday 07:00``.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)  # a Monday
    >>> str(moment("until", "Tuesday 07:00", at, ZoneInfo("Europe/Vienna")))
    '2026-11-03 06:00:00+00:00'
    >>> str(moment("until", "08:00", at, ZoneInfo("UTC")))
    '2026-11-03 08:00:00+00:00'
    """
    named = moments.read(field, text)
    if named is None or named.day == moments.TODAY:
        raise InvalidInput(field, f"{text!r} is no moment such as '07:00' or 'Tuesday 07:00'")
    here, is_weekday = after.astimezone(zone), named.day in moments.WEEKDAYS
    for ahead in range(1 if named.day == moments.TOMORROW else 0, 9):
        date = here.date() + timedelta(days=ahead)
        at = instant_of(datetime.combine(date, named.at), zone)
        if at > after and (not is_weekday or moments.WEEKDAYS[date.weekday()] == named.day):
            return at
    raise AssertionError(text)
