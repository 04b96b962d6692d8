"""calendar_5k_day_ms: what is due on a day of 5,000 events, found and written as `calendar_list`
shows it. And what it costs to read such a calendar at first, and again when nothing has changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from bench.numbers import percentile, report
from services.executor.calendars import text
from services.executor.calendars.book import CalendarBook
from tests.support.calendars import calendar, event
from vigil.calendars import mirror
from vigil.calendars.agenda import day_of
from vigil.calendars.reader import CalendarReader
from vigil.calendars.section import CalendarSection
from vigil.zones.database import zone_named

EVENTS: Final = 5_000
LOOKS: Final = 300


class Measured(NamedTuple):
    """What was measured, in milliseconds and seconds."""

    day_ms: list[float]
    first_s: float
    again_ms: float


async def measured(home: Path) -> Measured:
    """Read a calendar of one day, and look at that day again and again."""
    now, zone = datetime.now(UTC), zone_named("Europe/Berlin")
    day = now.astimezone(zone).date() + timedelta(days=1)
    start, until = day_of(day, zone)
    step = (until - start) / EVENTS
    file = home / "5k.ics"
    events = (
        event(f"e{number}", f":{start + number * step:%Y%m%dT%H%M%SZ}", "DURATION:PT30M",
              "LOCATION:Room 1", title=f"Meeting {number}")
        for number in range(EVENTS)
    )  # fmt: skip
    await asyncio.to_thread(file.write_text, calendar(*events))
    section = CalendarSection(kind="file", file=str(file), user="ann")
    begun = perf_counter()
    found = await CalendarReader(section, home).read(None, now)
    first_s, begun = perf_counter() - begun, perf_counter()
    await CalendarReader(section, home).read(found, now)
    again_ms = (perf_counter() - begun) * 1000
    mirror.store(mirror.path_of(home, "work", section), found)
    book, took = CalendarBook({"work": section}, home), []
    await book.between(["work"], start, until, zone)
    for _ in range(LOOKS):
        begun = perf_counter()
        there = await book.between(["work"], start, until, zone)
        lines = text.listed(there, zone, day)
        took.append((perf_counter() - begun) * 1000)
        assert len(there) == EVENTS
        assert len(lines) == text.SHOWN_MAX + 2
    return Measured(took, first_s, again_ms)


async def measure(home: Path) -> None:
    """Report the figures."""
    found = await measured(home)
    report("calendar_5k_day_ms", percentile(found.day_ms, 99), "ms", aim="< 20",
           p50=percentile(found.day_ms, 50))  # fmt: skip
    report("calendar_5k_first_look_s", found.first_s, "s")
    report("calendar_5k_look_again_ms", found.again_ms, "ms")
