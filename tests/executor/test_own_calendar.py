"""The timetable's own calendar (`/calendar/LINK.ics`) read by a client of calendars: ours, over
HTTP, with a second reader's word on each instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import icalendar
import recurring_ical_events

from tests.support.gateway import running_gateway
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.reader import CalendarReader
from vigil.calendars.section import CalendarSection
from vigil.zones.database import zone_named

BERLIN: Final = zone_named("Europe/Berlin")
ROWS: Final[dict[str, dict[str, Any]]] = {
    "weekdays": {"cron": "30 9 * * 1-5"},
    "nights": {"cron": "30 2 * * *"},
    "last of the month": {"cron": "0 18 L * *"},
    "days": {"interval_s": 86_400},
}
"""The nights are there where clocks change; what no rule describes is listed, up to 400 times."""


async def test_what_subscribes_sees_each_row_when_it_is_due(tmp_path: Path) -> None:
    """Issue 37: by the link, without a header; unchanged, it isn't read again."""
    async with running_gateway(tmp_path / "home") as gate:
        ann, nobody = await gate.person("ann"), await gate.http()
        for name, schedule in ROWS.items():
            row = {"name": name, "prompt": "Look", "zone": "Europe/Berlin", **schedule}
            assert (await ann.post("/api/cron", json=row)).status_code == 201
        path = (await ann.post("/api/calendar-links", json={"name": "x"})).json()["path"]
        section = CalendarSection(kind="ics", url=f"http://127.0.0.1:{gate.port}{path}")
        reader, now = CalendarReader(section, tmp_path), datetime.now(UTC)
        found = await reader.read(None, now)
        text = (await nobody.get(path)).content
        rows = {one["name"]: one for one in (await ann.get("/api/cron")).json()["rows"]}
    assert not found.remarks
    assert not [one.remark for one in found.objects if one.remark]
    since, until = now + timedelta(hours=1), now + timedelta(days=200)
    ours: dict[str, list[datetime]] = {}
    for entry in CalendarAgenda(found.objects).between(since, until, BERLIN):
        ours.setdefault(entry.text.title, []).append(entry.begins_at)
    assert ours.keys() == ROWS.keys()
    theirs: dict[str, list[datetime]] = {}
    query = recurring_ical_events.of(icalendar.Calendar.from_ical(text))
    for event in query.between(since, until):
        begins = event["DTSTART"].dt.astimezone(UTC)
        if since <= begins < until:
            theirs.setdefault(str(event["SUMMARY"]), []).append(begins)
    assert {name: sorted(set(each)) for name, each in theirs.items()} == ours
    for name, row in rows.items():
        # iCalendar has no parts of seconds.
        told = [datetime.fromisoformat(one).replace(microsecond=0) for one in row["next_at"]]
        ahead = list(takewhile(lambda at: at < until, (one for one in told if one >= since)))
        assert list(islice(ours[name], len(ahead))) == ahead, name
