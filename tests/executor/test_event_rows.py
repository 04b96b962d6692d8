"""Rows that follow events: moved as they are, over when they are cancelled, none passed over."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.executor.test_calendars import section
from tests.support.calendars import calendar, event, running_radicale
from tests.support.gateway import Gate, assert_problem
from tests.support.stack import running_stack
from vigil.calendars.agenda import CalendarAgenda, handle_of
from vigil.calendars.entries import CalendarWindow
from vigil.calendars.ical.objects import read_document
from vigil.calendars.ical.program import limited
from vigil.calendars.row_times import next_times
from vigil.contracts.board import EventSchedule
from vigil.zones.database import zone_named

pytestmark = pytest.mark.usefixtures("forked_readers")

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
BERLIN: Final = zone_named("Europe/Berlin")
WITHIN_S: Final = 60.0


def agenda_of(*events: str) -> CalendarAgenda:
    window = CalendarWindow.around(NOW)
    return CalendarAgenda(read_document(calendar(*events).encode(), window, limited).objects)


def at(minutes: float) -> str:
    return f":{NOW + timedelta(minutes=minutes):%Y%m%dT%H%M%SZ}"


def due(schedule: EventSchedule, *events: str, now: datetime = NOW) -> float | None:
    """Return in how many minutes a row is due next."""
    found = next_times(schedule, agenda_of(*events), BERLIN, now).at
    return None if found is None else (found - NOW).total_seconds() / 60


EACH: Final = EventSchedule(calendar="work", before_s=600)


def test_the_next_event_is_followed_wherever_it_goes() -> None:
    assert due(EACH, event("a", at(60)), event("b", at(30))) == 20
    assert due(EACH, event("a", at(60)), event("b", at(30), "STATUS:CANCELLED")) == 50
    assert due(EACH, event("a", at(5))) is None, "its time is over, and it was never to come"
    assert due(EACH) is None
    assert due(EACH, event("d", ";VALUE=DATE:20261201")) is None, "whole days have no time"
    days = EventSchedule(calendar="work", event=handle_of("d"), before_s=3600)
    midnight = datetime(2026, 11, 30, 23, tzinfo=UTC)
    assert (
        due(days, event("d", ";VALUE=DATE:20261201")) == (midnight - NOW).total_seconds() / 60 - 60
    )
    series = event("s", at(-7 * 24 * 60 + 60), "RRULE:FREQ=WEEKLY")
    assert due(EACH, series) == 50


def test_what_comes_so_near_that_its_time_is_over_is_due_at_once() -> None:
    waiting = next_times(EACH, agenda_of(event("a", at(60))), BERLIN, NOW)
    assert due(waiting, event("a", at(5))) == pytest.approx(1 / 60)
    assert due(waiting, event("a", at(90))) == 80
    assert due(waiting) is None


def test_two_events_a_minute_apart_are_both_followed() -> None:
    """The first instant was decided some seconds after the second was due."""
    events = event("a", at(10)), event("b", at(11))
    first = next_times(EACH, agenda_of(*events), BERLIN, NOW - timedelta(minutes=1))
    assert first.at == NOW
    late = NOW + timedelta(seconds=90)
    second = next_times(first, agenda_of(*events), BERLIN, late)
    assert second.at == late + timedelta(seconds=1)
    assert next_times(second, agenda_of(*events), BERLIN, late + timedelta(seconds=5)).at is None


def test_a_flood_of_events_has_a_row_run_once_a_minute() -> None:
    """Each of them has an instant soon after its own, though many share one."""
    many = [NOW + timedelta(minutes=10, seconds=3 * n) for n in range(300)]
    agenda = agenda_of(*(event(f"e{n}", f":{at:%Y%m%dT%H%M%SZ}") for n, at in enumerate(many)))
    row, instants = EACH, list[datetime]()
    now = NOW - timedelta(hours=1)
    while (row := next_times(row, agenda, BERLIN, now)).at is not None:
        instants.append(row.at)
        seen_again = max(now, row.at - timedelta(seconds=20))
        assert next_times(row, agenda, BERLIN, seen_again).at == row.at
        now = row.at + timedelta(seconds=5)
    gaps = {(b - a).total_seconds() for a, b in itertools.pairwise(instants)}
    assert min(gaps) >= 60
    for at in many:
        due_at = at - timedelta(minutes=10)
        assert any(timedelta(0) <= one - due_at <= timedelta(minutes=1) for one in instants)


async def test_a_row_moves_with_its_event_and_ends_with_it(tmp_path: Path) -> None:
    """Issue 37: `--before 10m --calendar work`, over all services."""
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)

    def standup(begins: datetime, *lines: str) -> str:
        return calendar(event("standup", f":{begins:%Y%m%dT%H%M%SZ}", *lines))

    async with running_radicale(tmp_path / "radicale") as radicale:
        await radicale.put("a.ics", standup(soon))
        sections = {"work": section(radicale, is_writable=False)}
        names = ("executor", "gateway", "scheduler", "cortex", "delivery")
        async with running_stack(tmp_path / "home", services=names, calendars=sections) as stack:
            gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
            ann, bob = await gate.person("ann"), await gate.person("bob")
            wanted = {"name": "prep", "prompt": "Prepare.", "calendar": "work", "before_s": 600}
            assert_problem(await bob.post("/api/cron", json=wanted), 422, "calendar")
            row = (await ann.post("/api/cron", json=wanted)).json()
            assert row["when"] == "10 min before each event of calendar work"

            async def until(**fields: Any) -> dict[str, Any]:
                async with asyncio.timeout(WITHIN_S):
                    while True:
                        found: dict[str, Any] = (await ann.get(f"/api/cron/{row['id']}")).json()
                        if all(found[name] == value for name, value in fields.items()):
                            return found
                        await asyncio.sleep(0.1)

            def instant(moment: datetime) -> str:
                return f"{moment:%Y-%m-%dT%H:%M:%SZ}"

            await until(next_at=[instant(soon - timedelta(minutes=10))])
            await radicale.put("a.ics", standup(soon + timedelta(hours=1)))
            moved = await until(next_at=[instant(soon + timedelta(minutes=50))])
            assert moved["history"][-1]["by"] == "calendar:work"
            # It comes so near that ten minutes before are over: it runs at once.
            await radicale.put("a.ics", standup(datetime.now(UTC) + timedelta(minutes=2)))
            await until(runs=1)
            await until(next_at=[])
            await radicale.put("a.ics", standup(soon))
            await until(next_at=[instant(soon - timedelta(minutes=10))])
            await radicale.put("a.ics", standup(soon, "STATUS:CANCELLED"))
            over = await until(next_at=[])
            assert over["history"][-1]["why"] == "its event is over, or was cancelled"
            await gate.close()
