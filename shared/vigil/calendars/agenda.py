"""What is due in a stretch of time, found at once among thousands. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import accumulate
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ..subjects import token_of
from ..zones.wall import instant_of
from .entries import CalendarObject, EventText, Instance

ZONES_MAX: Final = 4
"""On whose clocks an agenda is kept in order."""
HANDLE_LENGTH: Final = 8
_ID: Final = re.compile(r"(?:[\w-]{1,32}/)?([0-9a-f]{8})(?:[./][\w./]{0,60})?", re.ASCII)
CANCELLED: Final = "CANCELLED"


class AgendaEntry(NamedTuple):
    """An instance, with what it says and when it is, for who looks."""

    begins_at: datetime
    ends_at: datetime
    instance: Instance
    of: CalendarObject
    calendar: str = ""
    """By its name."""

    @property
    def text(self) -> EventText:
        return self.of.texts[self.instance.text]

    @property
    def is_all_day(self) -> bool:
        return self.instance.kind == "day"

    @property
    def is_cancelled(self) -> bool:
        return self.text.status == CANCELLED


class _Ordered(NamedTuple):
    """All instances, in order, on the clocks of one zone."""

    entries: list[AgendaEntry]
    begins: list[datetime]
    latest: list[datetime]
    """None of those up to one ends later than this."""


class CalendarAgenda:
    """The instances of one calendar, in order."""

    def __init__(self, objects: Iterable[CalendarObject], name: str = "") -> None:
        self.objects = tuple(objects)
        self._name = name
        self._ordered: dict[str, _Ordered] = {}

    def between(self, since: datetime, until: datetime, zone: tzinfo) -> list[AgendaEntry]:
        """Return what is due then, in order: what began before and goes on, too.

        Args:
            since, until: aware; what begins at `until` isn't in it.
            zone: of clocks for what floats, and of days.
        """
        there = self.order(zone)
        low = bisect_left(there.latest, since)
        high = bisect_left(there.begins, until)
        # What has no length is within its moment.
        return [
            one
            for one in there.entries[low:high]
            if one.ends_at > since or one.begins_at == one.ends_at >= since
        ]

    def of_object(self, one: CalendarObject, zone: tzinfo) -> Iterator[AgendaEntry]:
        """Yield the instances of one of its objects, in order."""
        for instance in one.instances:
            yield AgendaEntry(*instance.span(zone), instance, one, self._name)

    def is_ordered(self, zone: tzinfo) -> bool:
        """Whether they are in order on the clocks of a zone, so that `between` takes no time."""
        return str(zone) in self._ordered

    def order(self, zone: tzinfo) -> _Ordered:
        """Return them on the clocks of a zone: reckoned once, for the zones asked last."""
        name = str(zone)
        found = self._ordered.get(name)
        if found is None:
            entries = [entry for one in self.objects for entry in self.of_object(one, zone)]
            entries.sort(key=order_of)
            begins = [one.begins_at for one in entries]
            latest = list(accumulate((one.ends_at for one in entries), max))
            found = _Ordered(entries, begins, latest)
            if len(self._ordered) >= ZONES_MAX:
                self._ordered.clear()
            self._ordered[name] = found
        return found


def order_of(entry: AgendaEntry) -> tuple[datetime, bool, datetime, str]:
    """Return by what entries are in order: when they begin, what lasts all day first."""
    return entry.begins_at, not entry.is_all_day, entry.ends_at, entry.of.uid


def day_of(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return when a date begins and ends there, in UTC.

    >>> from vigil.zones.database import zone_named
    >>> [str(at) for at in day_of(date(2026, 3, 29), zone_named("Europe/Berlin"))]
    ['2026-03-28 23:00:00+00:00', '2026-03-29 22:00:00+00:00']
    """
    first, behind = (
        instant_of(datetime.combine(each, time()), zone).astimezone(UTC)
        for each in (day, day + timedelta(days=1))
    )
    return first, behind


def handle_of(uid: str) -> str:
    """Return by what a model and a person name an event: its UID is a stranger's text."""
    return token_of("calendar event", uid)[:HANDLE_LENGTH]


def handle_in(text: str) -> str:
    """Return what of an event's id names it; what is none stays as it is.

    >>> handle_in("work/3f9a1c2b.e4d1/20261201T080000Z"), handle_in("3f9a1c2b"), handle_in("x")
    ('3f9a1c2b', '3f9a1c2b', 'x')
    """
    found = _ID.fullmatch(text.strip())
    return text if found is None else found[1]


def stamp_of(etag: str) -> str:
    """Return what tells one state of an event from another, in four digits."""
    return token_of("calendar etag", etag)[:4]
