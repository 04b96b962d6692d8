"""What is to come, as a calendar that other programs read. Source: RFC 5545."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from icalendar import Calendar, Event, Timezone, TimezoneDaylight, TimezoneStandard

from vigil.contracts import TimetableRow
from vigil.contracts.board import AfterSchedule, CronWork, Ledger
from vigil.timetable.recurrence import Recurrence, recurrence_of
from vigil.zones.wall import changes

EVENTS_MAX: Final = 2_000
"""Of rows that no rule describes, all together."""
EVENTS_OF_A_ROW_MAX: Final = 400
"""A year of days, and some."""
DESCRIPTION_LENGTH_MAX: Final = 1_000
NAME: Final = "Vigil"
REFRESHED: Final = timedelta(hours=1)
"""How often a program is asked to look again."""
ZONE_YEARS: Final = 10
"""For so long the changes of a zone's clocks are told."""
CUT: Final = "(the last that is listed)"
"""What is said of the last instant of a row that goes on."""
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def calendar_of(
    rows: Iterable[TimetableRow],
    now: datetime,
    until: datetime,
    ledgers: Mapping[str, Ledger] = MappingProxyType({}),
) -> bytes:
    """Return when rows are due: rules without an end, and of what no rule describes the instants.

    Args:
        until: up to then instants are told (aware UTC).
        ledgers: by row, of those whose runs choose when the next is: of them the next is told.

    Raises:
        InvalidInput: a schedule is none.
    """
    on = [row for row in rows if not (row.is_of_system or row.is_removed) and row.is_enabled]
    on = [row for row in on if not isinstance(row.schedule, AfterSchedule)]
    most = min(EVENTS_OF_A_ROW_MAX, max(EVENTS_MAX // max(len(on), 1), 1))
    calendar = _empty()
    zones: dict[str, ZoneInfo] = {}
    for row in on:
        found = recurrence_of(row, now, until, ledgers.get(row.id, Ledger()), most=most)
        for event in _events(row, found, now):
            calendar.add_component(event)
        for rule in found.rules:
            if isinstance(zone := rule.first.tzinfo, ZoneInfo):
                zones[zone.key] = zone
    for zone in zones.values():
        calendar.subcomponents.insert(0, zone_of(zone, now))
    return bytes(calendar.to_ical())


def _empty() -> Calendar:
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//Vigil//Timetable//EN")
    calendar.add("name", NAME)
    calendar.add("x-wr-calname", NAME)
    calendar.add("refresh-interval", REFRESHED, parameters={"value": "DURATION"})
    calendar.add("x-published-ttl", "PT1H")
    return calendar


def zone_of(zone: ZoneInfo, now: datetime) -> Timezone:
    """Return a zone from a year ago on, each change of its clocks a component of its own.

    Not `Timezone.from_tzinfo`: it tells the beginning of summer time an hour late, and in a list,
    of which ical.js reads the first (icalendar 7.3.2, ical.js 2.2.1).
    """
    shown = Timezone()
    shown.add("tzid", zone.key)
    since = datetime(now.year - 1, 1, 1, tzinfo=UTC)
    until = since.replace(year=now.year + ZONE_YEARS)
    for at in (since, *changes(zone, since, until)):
        after = at.astimezone(zone)
        before = (at - timedelta(seconds=at != since)).astimezone(zone)
        offset = before.utcoffset() or timedelta()
        part = TimezoneDaylight() if after.dst() else TimezoneStandard()
        part.add("dtstart", at.replace(tzinfo=None) + offset)
        part.add("tzoffsetfrom", offset)
        part.add("tzoffsetto", after.utcoffset() or timedelta())
        part.add("tzname", after.tzname() or "")
        shown.add_component(part)
    return shown


def _events(row: TimetableRow, found: Recurrence, now: datetime) -> Iterable[Event]:
    for rule in found.rules:
        event = _event(row, rule.first, now, f"{rule.first:%H%M%S}")
        event.add("rrule", dict(rule.parts))
        if rule.without:
            event.add("exdate", list(rule.without))
        yield event
    for at in found.instants:
        is_last = found.is_cut and at == found.instants[-1]
        yield _event(row, at, now, f"{at:%Y%m%dT%H%M%SZ}", CUT if is_last else "")


def _event(row: TimetableRow, at: datetime, now: datetime, which: str, more: str = "") -> Event:
    prompt = row.work.prompt if isinstance(row.work, CronWork) else ""
    event = Event()
    event.add("uid", f"{row.id}-{which}")
    event.add("dtstamp", now.astimezone(UTC))
    event.add("dtstart", at)
    event.add("duration", timedelta(seconds=row.work.timeout_s))
    event.add("summary", _text(f"{row.name} {more}" if more else row.name))
    event.add("description", _text(prompt[:DESCRIPTION_LENGTH_MAX]))
    event.add("transp", "TRANSPARENT")
    return event


def _text(text: str) -> str:
    """Return a text without what a calendar can't hold."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
