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
        """When the next date begins there (aware UTC).

        >>> Day(date(2026, 11, 23), "Asia/Tokyo").ends_at.isoformat()
        '2026-11-23T15:00:00+00:00'
        """
        following = datetime.combine(self.date + timedelta(days=1), time())
        return instant_of(following, zone_named(self.zone)).astimezone(UTC)

    def __str__(self) -> str:
        return self.date.isoformat()
