"""Which instant it is when the clocks on the walls of a zone show a time. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

END: Final = datetime(9990, 1, 1, tzinfo=UTC)
"""Nothing is planned for later: the calendar ends a little after, zones are ahead of UTC, and some
sums of days fail soon."""
_TOLD: Final = re.compile(r"“[^”]*”|\b(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC\b", re.ASCII)
"""A quotation, or an instant as our texts have it."""
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant (aware UTC) at which a zone's clocks show that time.

    What they show twice in autumn is meant the first time; what they skip in spring is as soon as
    they have gone on, as with a row of the timetable.

    >>> from vigil.zones.database import zone_named
    >>> berlin = zone_named("Europe/Berlin")
    >>> str(instant_of(datetime(2026, 12, 1, 9), berlin))
    '2026-12-01 08:00:00+00:00'
    >>> str(instant_of(datetime(2026, 10, 25, 2, 30), berlin))
    '2026-10-25 00:30:00+00:00'
    >>> str(instant_of(datetime(2026, 3, 29, 2, 30), berlin))
    '2026-03-29 01:00:00+00:00'

    Args:
        wall: naive.

    Raises:
        OverflowError: that is beyond the calendar.
    """
    late = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if late.astimezone(zone).replace(tzinfo=None, fold=0) == wall.replace(fold=0):
        return late
    # Reckoned by the clock of after the change it's before it, by that of before it's after it.
    first = wall.replace(tzinfo=zone, fold=1, microsecond=0).astimezone(UTC)
    before = first.astimezone(zone).utcoffset()
    seconds = range(int((late - first).total_seconds()) + 1)

    def has_changed(after_s: int) -> bool:
        return (first + timedelta(seconds=after_s)).astimezone(zone).utcoffset() != before

    return first + timedelta(seconds=bisect_left(seconds, True, key=has_changed))


def local(at: datetime, zone: tzinfo) -> datetime:
    """Return an instant as the clocks of a zone show it. In the first and the last hours of the
    calendar, which some zones don't have, it's as it was given.

    >>> from vigil.zones.database import zone_named
    >>> str(local(datetime(2026, 12, 1, 8, tzinfo=UTC), zone_named("Europe/Berlin")))
    '2026-12-01 09:00:00+01:00'
    >>> str(local(datetime(9999, 12, 31, 23, tzinfo=UTC), zone_named("Europe/Berlin")))
    '9999-12-31 23:00:00+00:00'

    Args:
        at: aware.
    """
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def dated(at: datetime, zone: tzinfo) -> str:
    """Write an instant with its weekday and offset, in English whatever the locale.

    >>> dated(datetime(2026, 11, 20, 11, 34, 5, tzinfo=UTC), UTC)
    'Friday 2026-11-20T11:34:05+00:00'
    """
    shown = local(at, zone)
    return f"{_DAYS[shown.weekday()]} {shown.isoformat(timespec='seconds')}"


def on_clocks(text: str, zone: ZoneInfo) -> str:
    """Return a text of ours with its instants on a zone's clocks; what it quotes stays as it is.

    >>> from vigil.zones.database import zone_named
    >>> told = "Planned for 2026-12-04 08:00:00 UTC: “at 2026-12-04 08:00 UTC”."
    >>> on_clocks(told, zone_named("Europe/Berlin"))
    'Planned for 2026-12-04 09:00:00 Europe/Berlin: “at 2026-12-04 08:00 UTC”.'
    """

    def shown(found: re.Match[str]) -> str:
        if not found[1] or zone.key.endswith("UTC"):
            return found[0]
        at = local(datetime.fromisoformat(found[1]).replace(tzinfo=UTC), zone)
        return f"{at.replace(tzinfo=None)!s:.{len(found[1])}} {zone.key}"

    return _TOLD.sub(shown, text)


def changes(zone: tzinfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield when the clocks of a zone change, to the second (aware UTC).

    Those that change, and back, within a day are passed over: none did.

    >>> from vigil.zones.database import zone_named
    >>> year = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    >>> [str(at) for at in changes(zone_named("Europe/Berlin"), *year)]
    ['2026-03-29 01:00:00+00:00', '2026-10-25 01:00:00+00:00']

    Args:
        since: aware UTC.
        until: aware UTC.
    """
    day, before = since, since.astimezone(zone).utcoffset()
    while day < until:
        offset = (day + timedelta(days=1)).astimezone(zone).utcoffset()
        if offset != before:
            low, high = day, day + timedelta(days=1)
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                is_before = middle.astimezone(zone).utcoffset() == before
                low, high = (middle, high) if is_before else (low, middle)
            yield high
        day, before = day + timedelta(days=1), offset
