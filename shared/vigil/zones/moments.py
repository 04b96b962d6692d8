"""Moments to come as a person names them: ``9:00``, ``tomorrow 9:00``, ``Friday 18:30``. Pure.

What may mean either of two days or hours is refused, with what to write instead.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ..errors import InvalidInput
from .wall import instant_of

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TODAY: Final = "today"
TOMORROW: Final = "tomorrow"
_DAYS: Final = {one[:3]: one for one in WEEKDAYS} | {
    one: one for one in (TODAY, TOMORROW, *WEEKDAYS)
}
_NAMED: Final = re.compile(
    r"(?P<next>next\s+)?(?:(?P<day>[a-z]+)(?:\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?(?:\s+(?P<after>[a-z]+))?"
)
_BARE: Final = re.compile(r"(?:next\s+)?([a-z]+)")


class NamedTime(NamedTuple):
    """A time of day, and which day is named; empty: none is."""

    day: str
    at: time


def read(field: str, text: str) -> NamedTime | None:
    """Take apart what names a time of a day; None: the text has no such form.

    Raises:
        InvalidInput: it has, and says too little, or there is no such time.

    >>> read("at", "Tomorrow at 9:00"), read("at", "6:30 pm fri"), read("at", "2026-12-01")
    (NamedTime(day='tomorrow', at=datetime.time(9, 0)), NamedTime(day='friday', \
at=datetime.time(18, 30)), None)
    """
    words = text.strip().lower()
    if (bare := _BARE.fullmatch(words)) and bare[1] in _DAYS:
        raise InvalidInput(field, f"{text!r} says no hour: write {_DAYS[bare[1]]} 9:00")
    found = _NAMED.fullmatch(words)
    if found is None or (found["day"] and found["after"]):
        return None
    day = found["day"] or found["after"] or ""
    if day not in _DAYS and (day or not (found["minute"] or found["half"])):
        return None
    if found["next"]:
        raise InvalidInput(field, f"{text!r} may be of this week or the one after: write its date")
    if not (found["minute"] or found["half"]):
        raise InvalidInput(field, f"{text!r}: write {found['hour']}:00 or {found['hour']}pm")
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if hour > 23 or minute > 59 or (found["half"] and not 0 < hour < 13):
        raise InvalidInput(field, f"{text!r}: there is no such hour")
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"] == "pm")
    return NamedTime(_DAYS.get(day, ""), time(hour, minute))


def wall_of(field: str, text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return what the clocks of a zone show (naive) when the moment comes that a text names; None:
    it has no such form. Without a day it's the next such time.

    Args:
        now: aware UTC.

    Raises:
        InvalidInput: it may mean one of two, says too little, or is over.

    >>> from vigil.zones.database import zone_named
    >>> now, berlin = datetime.fromisoformat("2026-11-20T12:00Z"), zone_named("Europe/Berlin")
    >>> for text in ("tomorrow 9:00", "12:30", "13:30", "mon 9am"):  # it is a Friday, 13:00 there
    ...     print(wall_of("at", text, now, berlin))
    2026-11-21 09:00:00
    2026-11-21 12:30:00
    2026-11-20 13:30:00
    2026-11-23 09:00:00
    """
    named = read(field, text)
    if named is None:
        return None
    today = now.astimezone(zone).date()
    ahead = int(named.day == TOMORROW)
    if named.day in WEEKDAYS:
        ahead = (WEEKDAYS.index(named.day) - today.weekday()) % 7
        if not ahead:
            raise InvalidInput(field, f"{text!r}: today is {named.day}: write today, or a date")
    wall = datetime.combine(today + timedelta(days=ahead), named.at)
    if instant_of(wall, zone) <= now:
        if named.day:
            raise InvalidInput(field, f"{text!r} is over")
        wall += timedelta(days=1)
    return wall
