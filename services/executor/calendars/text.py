"""What a model is shown of a calendar. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from vigil.calendars.agenda import AgendaEntry, handle_of, stamp_of
from vigil.calendars.entries import CalendarObject
from vigil.errors import InvalidInput
from vigil.texts import excerpt

SHOWN_MAX: Final = 200
"""Entries of one answer."""
NOTES_SHOWN_MAX: Final = 500
DAYS_MAX: Final = 62
WORDS: Final = {"today": 0, "tomorrow": 1}


class EventId(NamedTuple):
    """An event as it was listed: ``work/3f9a1c2b.e4d1/20261201T080000Z``."""

    calendar: str
    handle: str
    stamp: str
    """Of the state in which it was listed."""
    recurrence: str
    """Which of a series; empty: it's none, or all of it is meant."""


def id_of(name: str, one: CalendarObject, recurrence: str = "") -> str:
    """Return by what an event is named in a call."""
    instance = f"/{recurrence}" if recurrence else ""
    return f"{name}/{handle_of(one.uid)}.{stamp_of(one.etag)}{instance}"


def read_id(text: str) -> EventId:
    """Read one. Raises: InvalidInput.

    >>> read_id("work/3f9a1c2b.e4d1/20261201T080000Z")
    EventId(calendar='work', handle='3f9a1c2b', stamp='e4d1', recurrence='20261201T080000Z')
    """
    calendar, _, rest = text.strip().strip("[]").partition("/")
    which, _, recurrence = rest.partition("/")
    handle, _, stamp = which.partition(".")
    if not (calendar and len(handle) == 8 and len(stamp) == 4):
        raise InvalidInput("event", "is no id of an event: take one from calendar_list, as it is")
    return EventId(calendar, handle, stamp, recurrence)


def day_named(field: str, text: str, today: date) -> date:
    """Read a day. Raises: InvalidInput.

    >>> day_named("day", "tomorrow", date(2026, 12, 31))
    datetime.date(2027, 1, 1)
    """
    word = text.strip().lower()
    if word in WORDS:
        return today + timedelta(days=WORDS[word])
    try:
        return date.fromisoformat(word)
    except ValueError as error:
        raise InvalidInput(field, "must be a date as 2026-12-01, today or tomorrow") from error


def listed(found: Sequence[AgendaEntry], zone: ZoneInfo, first: date) -> list[str]:
    """Return entries as lines, a heading for each day: what began before is under the first."""
    lines: list[str] = []
    heading = None
    for entry in found[:SHOWN_MAX]:
        day = max(_day_of(entry, zone), first)
        if day != heading:
            lines.append(f"{day:%Y-%m-%d %A}:")
            heading = day
        lines.append(f"- {line_of(entry, zone, day)}")
    if len(found) > SHOWN_MAX:
        lines.append(f"[{len(found) - SHOWN_MAX} more: ask for fewer days]")
    return lines


def _day_of(entry: AgendaEntry, zone: ZoneInfo) -> date:
    return entry.instance.days[0] if entry.is_all_day else entry.begins_at.astimezone(zone).date()


def line_of(entry: AgendaEntry, zone: ZoneInfo, day: date | None = None) -> str:
    """Return an entry in a line: when, what, where, and by what it's named."""
    said = entry.text
    parts = [f"{when_of(entry, zone, day)}  {said.title or '(no title)'}"]
    if said.place:
        parts.append(f"at {said.place}")
    parts += [
        word
        for is_so, word in (
            (entry.is_cancelled, "CANCELLED"),
            (said.status == "TENTATIVE", "tentative"),
            (said.is_free, "takes no time"),
            (said.people > 1, f"{said.people} people"),
            (bool(entry.of.rule), "of a series"),
            (said.is_zone_unknown, f"its zone {said.zone!r} isn't known: taken as {zone.key}"),
        )
        if is_so
    ]
    return f"{'; '.join(parts)} [{id_of(entry.calendar, entry.of, entry.instance.recurrence)}]"


def when_of(entry: AgendaEntry, zone: ZoneInfo, day: date | None = None) -> str:
    """Say when an entry is, on the clocks of a zone.

    Args:
        day: the one that it's listed under, which isn't said again.
    """
    if entry.is_all_day:
        first, last = entry.instance.days
        if first == last:
            return "all day" if first == day else f"{first:%A %Y-%m-%d}, all day"
        return f"all day, {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    begins, ends = (each.astimezone(zone) for each in (entry.begins_at, entry.ends_at))
    shown = f"{begins:%H:%M}" if begins.date() == day else f"{begins:%A %Y-%m-%d %H:%M}"
    if begins == ends:
        return shown
    if ends.date() == begins.date():
        return f"{shown}-{ends:%H:%M}"
    return f"{shown} to {ends:%Y-%m-%d %H:%M}"


def notes_of(entry: AgendaEntry) -> str:
    """Return what more an event says, on lines that are set off."""
    text = excerpt.in_bytes(entry.text.notes.strip(), NOTES_SHOWN_MAX)
    return "".join(f"\n    {line}" for line in text.splitlines()) if text else ""


def ages_of(stale: Iterable[tuple[str, datetime | None]], now: datetime) -> list[str]:
    """Say of which calendars what is known is old, or nothing is."""
    told = []
    for name, at in stale:
        if at is None:
            told.append(f"{name}: it wasn't seen yet (`vigil calendar list` says why)")
        elif now - at > timedelta(hours=2):
            hours = int((now - at).total_seconds() // 3600)
            told.append(f"{name}: last seen {hours} h ago (`vigil calendar list` says why)")
    return told
