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

ZONES_APART: Final = 15 * 3600
"""Seconds that a time on any clock is away from the same on UTC's, at most."""
HANDLE_LENGTH: Final = 8
_ID: Final = re.compile(r"(?:[\w-]{1,32}/)?([0-9a-f]{8})(?:[./][\w./]{0,60})?", re.ASCII)
CANCELLED: Final = "CANCELLED"


class AgendaEntry(NamedTuple):
    """An instance, with what it says and when it is, for who looks."""

    begins_at: datetime
    ends_at: datetime
    instance: Instance
    of: CalendarObject

    @property
    def text(self) -> EventText:
        return self.of.texts[self.instance.text]

    @property
    def is_all_day(self) -> bool:
        return self.instance.kind == "day"

    @property
    def is_cancelled(self) -> bool:
        return self.text.status == CANCELLED


class CalendarAgenda:
    """The instances of one calendar, in order."""

    def __init__(self, objects: Iterable[CalendarObject]) -> None:
        self.objects = tuple(objects)
        rows = sorted(
            (
                (instance.begins, instance.ends, number, place)
                for number, one in enumerate(self.objects)
                for place, instance in enumerate(one.instances)
            )
        )
        self._rows = rows
        self._begins = [row[0] for row in rows]
        # None of the rows before one ends later than this.
        self._latest = list(accumulate((row[1] for row in rows), max))

    def __len__(self) -> int:
        return len(self._rows)

    def between(self, since: datetime, until: datetime, zone: tzinfo) -> list[AgendaEntry]:
        """Return what is due then, in order: what began before and goes on, too.

        Args:
            since, until: aware; what begins at `until` isn't in it.
            zone: of clocks for what floats, and of days.
        """
        first, behind = since.timestamp(), until.timestamp()
        low = bisect_left(self._latest, first - ZONES_APART)
        high = bisect_left(self._begins, behind + ZONES_APART)
        found = [
            entry
            for begins, ends, number, place in self._rows[low:high]
            if ends >= first - ZONES_APART
            for entry in (self._entry(number, place, zone),)
            if _is_within(entry, since, until)
        ]
        found.sort(key=lambda one: (one.begins_at, not one.is_all_day, one.ends_at, one.of.uid))
        return found

    def of_object(self, one: CalendarObject, zone: tzinfo) -> Iterator[AgendaEntry]:
        """Yield the instances of one of its objects, in order."""
        for instance in one.instances:
            yield AgendaEntry(*instance.span(zone), instance, one)

    def _entry(self, number: int, place: int, zone: tzinfo) -> AgendaEntry:
        one = self.objects[number]
        instance = one.instances[place]
        return AgendaEntry(*instance.span(zone), instance, one)


def _is_within(entry: AgendaEntry, since: datetime, until: datetime) -> bool:
    """Whether a part of it is: of what has no length, its moment."""
    if entry.begins_at >= until:
        return False
    return entry.ends_at > since or entry.begins_at == entry.ends_at >= since


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
