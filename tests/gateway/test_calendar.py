"""Calendars: read by other programs they say what the timetable does (RFC 5545)."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar
from msgspec.structs import replace

from services.gateway.timetable.calendar import CUT, EVENTS_OF_A_ROW_MAX, calendar_of
from tests.support import examples
from vigil.contracts import TimetableRow
from vigil.contracts.board import CronSchedule, CronWork, EverySchedule
from vigil.timetable.schedule import is_active, upcoming

NOW: Final = datetime(2026, 3, 27, 12, tzinfo=UTC)
ROW: Final = TimetableRow(
    id="1f" * 16, owner="ann", agent="vigil", name="briefing", work=CronWork(prompt="look"),
    schedule=CronSchedule(expression="0 * * * *", zone="UTC"), zone="UTC",
    made_at=NOW - timedelta(days=20), scheduled_at=NOW - timedelta(days=20, minutes=7),
)  # fmt: skip
ICAL_JS: Final = Path(__file__).parents[2] / ".venv" / "mcp" / "node_modules" / "ical.js"
READER: Final = Path(__file__).with_name("read_calendar.mjs")
BERLIN, LONDON, HOWE, CHATHAM, PHOENIX, SANTIAGO = (
    "Europe/Berlin", "Europe/London", "Australia/Lord_Howe", "Pacific/Chatham",
    "America/Phoenix", "America/Santiago",
)  # fmt: skip


def cron(expression: str, zone: str = BERLIN, **changes: Any) -> TimetableRow:
    schedule = CronSchedule(expression=expression, zone=zone)
    return replace(ROW, schedule=schedule, zone=zone, **changes)


def every(interval_s: int, **changes: Any) -> TimetableRow:
    return replace(ROW, schedule=EverySchedule(interval_s=interval_s), **changes)


RULES: Final = {
    "each morning": (cron("0 9 * * *"), 366),
    "weekdays, before the clocks change": (cron("30 8 * * 1-5", SANTIAGO), 366),
    "sundays by both names": (cron("0 7 * * 0,7", LONDON), 366),
    "an hour that a day lacks, and one has twice": (cron("30 2 * * *"), 366),
    "the hours about it": (cron("0 1-3 * * *"), 366),
    "the last days of months": (cron("15 6 29,30,31 * *", PHOENIX), 366),
    "once a year": (cron("0 0 1 1 *"), 366),
    "a leap day": (cron("0 9 29 2 *"), 4 * 366),
    "days of some months": (cron("0 12 1,15 3,9 *"), 366),
    "weekdays of some months": (cron("0 12 * 4-10 1"), 366),
    "all days of some months": (cron("0 12 * 4 *"), 366),
    "each hour": (cron("0 * * * *"), 30),
    "each hour, by half an hour of summer time": (cron("0 * * * *", HOWE), 30),
    "each hour, 45 minutes off": (cron("20 * * * *", CHATHAM), 30),
    "each quarter of an hour": (cron("*/15 * * * *"), 12),
    "each quarter of an hour of work": (cron("*/15 8-17 * * 1-5"), 30),
    "each hour of its hours": (cron("0 * * * *", active_hours="08:00-18:00"), 30),
    "hours over midnight": (cron("0 * * * *", active_hours="22:00-04:00"), 30),
    "an interval of a day": (every(86_400), 366),
    "an interval of three days": (every(3 * 86_400), 366),
    "an interval of an hour": (every(3600), 30),
    "an interval of 90 minutes": (every(5400), 30),
    "an interval of 7 hours": (every(7 * 3600), 60),
    "an interval of 10 minutes": (every(600), 4),
    "an interval of 100 seconds": (every(100), 1),
    "an interval in its hours": (every(3600, active_hours="08:00-18:00", zone=BERLIN), 30),
}
"""Rows, and for how many days they are read."""
ONE_BY_ONE: Final = {
    "the last day of months": (cron("0 6 L * *"), 366),
    "the second friday": (cron("0 6 * * 5#2"), 366),
    "the 13th, and fridays": (cron("0 6 13 * 5"), 366),
    "two seconds of a minute": (cron("0,30 0 6 * * *"), 100),
}
"""Of which no rule is told."""
ALL: Final = RULES | ONE_BY_ONE


def expected(row: TimetableRow, days: int) -> list[datetime]:
    within = takewhile(lambda at: at <= NOW + timedelta(days=days), upcoming(row, NOW))
    return [at for at in within if is_active(row.active_hours, row.zone, at)]


def written(row: TimetableRow, days: int) -> bytes:
    return calendar_of([row], NOW, NOW + timedelta(days=days))


def walked(data: bytes, name: str | None = None) -> list[Any]:
    return list(Calendar.from_ical(data).walk(name))


def by_dateutil(data: bytes, days: int) -> list[datetime]:
    """Read a calendar by the rules of dateutil, on the clocks of each event."""
    end, found = NOW + timedelta(days=days), list[datetime]()
    for event in walked(data, "VEVENT"):
        start = event["dtstart"].dt
        if "rrule" not in event:
            found.append(start)
            continue
        zone, but = start.tzinfo, event.get("exdate")
        without = {one.dt.replace(tzinfo=None) for one in but.dts} if but else set()
        rule = rrulestr(event["rrule"].to_ical().decode(), dtstart=start.replace(tzinfo=None))
        shown = takewhile(lambda at: at <= end.replace(tzinfo=None) + timedelta(days=1), rule)
        found += [at.replace(tzinfo=zone) for at in shown if at not in without]
    return sorted(one for at in found if (one := at.astimezone(UTC)) <= end)


@pytest.mark.parametrize("name", ALL)
def test_a_calendar_says_when_a_row_is_due(name: str) -> None:
    """By dateutil, also where the clocks change."""
    row, days = ALL[name]
    assert by_dateutil(written(row, days), days) == expected(row, days)


@pytest.mark.skipif(shutil.which("node") is None or not ICAL_JS.exists(), reason="no ical.js")
def test_another_reader_finds_the_same() -> None:
    """ical.js, as Thunderbird has it, with the zones that the calendar brings along."""
    asked = [
        {
            "calendar": written(row, days).decode(),
            "until": (NOW + timedelta(days=days)).isoformat(),
        }
        for row, days in ALL.values()
    ]
    library = str(ICAL_JS / "dist" / "ical.js")
    done = subprocess.run(
        ["node", str(READER), library], input=json.dumps(asked), capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    for name, read in zip(ALL, json.loads(done.stdout), strict=True):
        assert [datetime.fromtimestamp(at, UTC) for at in read] == expected(*ALL[name]), name


@pytest.mark.parametrize("name", RULES)
def test_what_goes_on_is_told_by_rules_of_days_where_it_can_be(name: str) -> None:
    """A rule has no end: an hourly row stopped at its 400th time. Few readers know hours."""
    events = walked(written(*RULES[name]), "VEVENT")
    rules = [event["rrule"] for event in events if "rrule" in event]
    assert rules
    assert len(events) <= 50
    is_of_days = all("HOURLY" not in one["freq"] for one in rules)
    may_be = "100 seconds" in name or "minutes" in name or "quarter of an hour" in name
    assert is_of_days or may_be or "7 hours" in name


@examples.up_to(300)
@given(
    minute=st.sampled_from(("0", "30", "*/20", "5,50")),
    hour=st.sampled_from(("*", "2", "*/6", "1-3", "0,23")),
    day=st.sampled_from(("*", "1", "*/2", "15-31", "L")),
    month=st.sampled_from(("*", "2,3", "10")),
    weekday=st.sampled_from(("*", "1-5", "0", "7", "5L")),
    zone=st.sampled_from((BERLIN, HOWE, CHATHAM, SANTIAGO, "UTC")),
    hours=st.sampled_from(("", "02:30-09:00", "21:00-03:00")),
    months_on=st.integers(0, 11),
)
def test_whatever_the_expression_a_calendar_says_what_it_does(
    minute: str, hour: str, day: str, month: str, weekday: str, zone: str, hours: str,
    months_on: int,
) -> None:  # fmt: skip
    row = cron(f"{minute} {hour} {day} {month} {weekday}", zone, active_hours=hours)
    now = NOW + timedelta(days=30.4 * months_on)
    until = now + timedelta(days=40)
    data = calendar_of([row], now, until)
    within = takewhile(lambda at: at <= until, upcoming(row, now))
    wanted = [at for at in within if is_active(hours, zone, at)]
    days = (until - NOW).days + 1  # a part of a day is one
    read = [at for at in by_dateutil(data, days) if now < at <= until]
    is_cut = CUT.encode() in data.replace(b"\r\n ", b"")
    assert read == (wanted[: len(read)] if is_cut else wanted)


def test_what_is_cut_says_so() -> None:
    """Right or not at all: the last that is listed is named, for who would take it for the end."""
    busy = cron("0,20,40 * 6 * * 1")  # two thirds of a minute: by no rule
    row = replace(busy, schedule=CronSchedule(expression="0,20,40 * 6 * * *", zone=BERLIN))
    events = walked(written(row, 30), "VEVENT")
    assert len(events) == EVENTS_OF_A_ROW_MAX
    assert [CUT in str(one["summary"]) for one in events] == [False] * 399 + [True]
    assert CUT.encode() not in written(cron("0 6 L * *"), 366)


def test_of_many_rows_each_is_told() -> None:
    """Those that come first leave no row out; what is paused, is no one's."""
    rows = [replace(cron("0,20,40 * 6 * * *"), id=f"{n:032x}", name=f"row {n}") for n in range(100)]
    paused = replace(ROW, is_enabled=False, name="paused")
    once = replace(every(1), runs_once=True, name="once", id="f" * 32)
    data = calendar_of([*rows, paused, once], NOW, NOW + timedelta(days=366))
    names = [str(one["summary"]).split(" (")[0] for one in walked(data, "VEVENT")]
    assert set(names) == {row.name for row in rows} | {"once"}
    assert names.count("once") == 1
    assert len(names) <= 2_000


@examples.up_to(500)
@given(st.text(max_size=200))
def test_any_text_comes_back_out_of_a_calendar(text: str) -> None:
    """RFC 5545, 3.1 and 3.3.11: whatever name and prompt hold, nothing else becomes of it."""
    row = replace(ROW, name=text, work=CronWork(prompt=f"{text}\n;,\\{text}"))
    data = calendar_of([row], NOW, NOW + timedelta(hours=1))
    assert all(len(line) <= 75 for line in data.split(b"\r\n"))
    plain = "".join(c for c in _lines(text) if c in "\n\t" or c.isprintable() or ord(c) > 159)
    seen = {str(event["summary"]) for event in walked(data, "VEVENT")}
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert seen == {plain}
    names = {one.name for one in walked(data)}
    assert names == {"VCALENDAR", "VEVENT"}


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_a_zone_is_told_for_the_years_to_come() -> None:
    """As RFC 5545 has it: a change begins at the time that the clocks show before."""
    data = written(cron("0 9 * * *"), 30)
    (zone,) = walked(data, "VTIMEZONE")
    begin = {part["dtstart"].dt.isoformat(): part.name for part in zone.subcomponents}
    assert begin["2026-03-29T02:00:00"] == "DAYLIGHT"
    assert begin["2026-10-25T03:00:00"] == "STANDARD"
    assert max(begin) > "2034-01-01"
    assert len(data) < 4_000
