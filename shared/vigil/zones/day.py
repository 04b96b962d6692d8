"""A date, where it is that. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from .database import zone_named
from .wall import instant_of


class Day(NamedTuple):
    """A date of a zone's calendar: 23 to 25 hours, mostly."""

    date: date
    zone: str

    @classmethod
    def at(cls, now: datetime, zone: str = "UTC") -> Day:
        """Return the day that an instant (aware) is of.

        Raises:
            KeyError: no such zone is known.
        """
        return cls(now.astimezone(zone_named(zone)).date(), zone)

    @property
    def ends_at(self) -> datetime:
        """When the next date begins there (aware UTC), for good.

        >>> Day(date(2026, 11, 23), "Asia/Tokyo").ends_at.isoformat()
        '2026-11-23T15:00:00+00:00'
        """
        zone = zone_named(self.zone)
        following = datetime.combine(self.date + timedelta(days=1), time())
        first = instant_of(following, zone).astimezone(UTC)
        # Clocks that go back over midnight, as from 0:01, show the end of this date once more.
        last = following.replace(tzinfo=zone, fold=1).astimezone(UTC)
        is_again = (last - timedelta(seconds=1)).astimezone(zone).date() == self.date
        return last if last > first and is_again else first

    def __str__(self) -> str:
        return self.date.isoformat()
