"""What of a calendar is kept: its objects, and when each is due in a stretch of time. Pure.

An instance is one of three kinds. ``at``: an instant. ``floating``: a time on whatever clock is
looked at. ``day``: a date, or several. Those of the last two become instants when somebody looks,
by the zone that holds for them then. All are numbers, so that a day of thousands is found at once:
seconds of the epoch; of the last two kinds as if their clock were UTC's.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, Literal

import msgspec

InstanceKind = Literal["at", "floating", "day"]
TITLE_LENGTH_MAX: Final = 300
PLACE_LENGTH_MAX: Final = 300
NOTES_LENGTH_MAX: Final = 4_000
DAY_S: Final = 86_400
"""In the numbers of days, which know no changes of clocks."""


class EventText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event says; instances of a series share it, but those that were changed."""

    title: str = ""
    place: str = ""
    notes: str = ""
    status: str = ""
    """``TENTATIVE``, ``CONFIRMED``, ``CANCELLED`` or nothing."""
    is_free: bool = False
    """It takes no time of its owner's (TRANSP:TRANSPARENT)."""
    zone: str = ""
    """The zone that it is written in, by the name that it has there."""
    is_zone_unknown: bool = False
    """Nobody knows that zone: its times count as floating."""
    people: int = 0
    """How many are invited."""


class Instance(msgspec.Struct, frozen=True, array_like=True):
    """One time at which an event is due."""

    kind: InstanceKind
    begins: int
    ends: int
    """At least `begins`."""
    recurrence: str
    """Which of a series, as RECURRENCE-ID has it: ``20261201T080000Z``; empty: there is one."""
    text: int
    """Which of the texts of its object."""

    def span(self, zone: tzinfo) -> tuple[datetime, datetime]:
        """Return when it begins and ends, in UTC. A time that clocks skip is by the offset before
        (RFC 5545, 3.3.5).

        Args:
            zone: of clocks for what floats, and of days.
        """
        if self.kind == "at":
            return datetime.fromtimestamp(self.begins, UTC), datetime.fromtimestamp(self.ends, UTC)
        begins, ends = (
            datetime.fromtimestamp(each, UTC).replace(tzinfo=zone).astimezone(UTC)
            for each in (self.begins, self.ends)
        )
        return begins, max(begins, ends)

    @property
    def days(self) -> tuple[date, date]:
        """Return the first and the last day of one of kind ``day``."""
        first, behind = (
            datetime.fromtimestamp(each, UTC).date() for each in (self.begins, self.ends)
        )
        return first, max(first, behind - timedelta(days=1))


class CalendarObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event, or one series with all that was changed of it."""

    href: str
    """Where it is on its server, as an absolute path; in a document, nothing."""
    etag: str
    """Of what was read; in a document, a digest of it."""
    uid: str
    data: str = ""
    """As its server has it; of documents, which nobody writes, nothing."""
    texts: tuple[EventText, ...] = ()
    instances: tuple[Instance, ...] = ()
    rule: str = ""
    """The rule of a series, as it is written; empty: it's none."""
    sequence: int = 0
    """Which revision its organizer says that it is."""
    is_cut: bool = False
    """It has more instances in that stretch than are kept: the first ones are."""
    remark: str = ""
    """What of it couldn't be read, or is read otherwise than it says."""


class CalendarWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The stretch of time in which instances are known, as dates: the last one isn't in it."""

    first: date
    near: date
    """From here on instances come first, where there are too many."""
    behind: date

    @classmethod
    def around(cls, now: datetime) -> CalendarWindow:
        """Return the one for a moment: the year behind it, and two ahead."""
        today, year = now.astimezone(UTC).date(), timedelta(days=366)
        month, monday = today.replace(day=1), today - timedelta(days=today.weekday())
        near = monday - timedelta(days=7)  # so it's the same for a week
        return cls(first=month - year, near=near, behind=month + 2 * year)

    def has(self, day: date) -> bool:
        """Whether a day is in it, with room for zones.

        >>> CalendarWindow.around(datetime(2026, 11, 28, tzinfo=UTC)).has(date(2030, 1, 1))
        False
        """
        margin = timedelta(days=2)
        return self.first + margin <= day < self.behind - margin


class RawObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object as it came."""

    href: str
    etag: str
    data: str


class ToRead(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read: a document, or objects of a collection."""

    window: CalendarWindow
    document: bytes | None = None
    objects: tuple[RawObject, ...] = ()


class ReadApart(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    objects: tuple[CalendarObject, ...] = ()
    remarks: tuple[str, ...] = ()
    problem: str = ""
    """Why it's no calendar."""
