"""What is said of rows of the timetable beside running them: findings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from vigil.contracts import SlotEntry, TimetableRow
from vigil.contracts.board import CronSchedule, CronWork, EverySchedule
from vigil.timetable import reasons
from vigil.timetable.edit import moved, words_of_move
from vigil.timetable.findings import findings
from vigil.timetable.instants.once import once
from vigil.timetable.ledger import ledger_of

NOW = datetime(2026, 3, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = TimetableRow(
    id="1f" * 16, owner="ann", agent="vigil", name="briefing", work=CronWork(prompt="look"),
    schedule=CronSchedule(expression="0 * * * *", zone="UTC"), zone="UTC",
    made_at=NOW - timedelta(days=20), scheduled_at=NOW - timedelta(days=20),
)  # fmt: skip


def entry(hours_ago: float, state: Any, reason: str = "", count: int = 1) -> SlotEntry:
    at = NOW - hours_ago * HOUR
    first = at - (count - 1) * HOUR if count > 1 else None
    return SlotEntry(
        row=HOURLY.id, due_at=at, at=at, state=state, reason=reason, count=count, first_at=first,
        session="ann:vigil:_cron-1f",
    )  # fmt: skip


GOOD = [entry(1, "running"), entry(1, "ran"), entry(0, "running"), entry(0, "ran")]


@pytest.mark.parametrize(
    ("entries", "changes", "expected"),
    [
        (GOOD, {}, []),
        (GOOD[:2], {}, []),
        ([entry(2, "running"), entry(2, "ran")], {}, ["undecided"]),
        ([entry(2, "ran")], {"is_enabled": False}, []),
        ([entry(2, "ran")], {"is_removed": True}, []),
        ([], {"runs_once": True}, ["undecided"]),
        ([entry(3, "running"), entry(3, "ran")], {"runs_once": True}, []),
        ([entry(1, "running")], {"misfire": "all"}, ["no_end"]),
        ([entry(1, "running"), entry(1, "failed", "401"), *GOOD[2:3]], {}, []),
        (
            [entry(2, "running"), entry(2, "failed", "401"), entry(1, "running"),
             entry(1, "failed", "402"), entry(0, "skipped", reasons.HOURS)],
            {}, ["failing"],
        ),
        ([entry(5, "skipped", reasons.HOURS), entry(0, "skipped", reasons.HOURS)], {},
         ["never_ran"]),
        ([*GOOD, entry(0, "missed", reasons.TOO_LATE, count=9)], {}, ["missed"]),
        ([*GOOD, entry(0, "missed", reasons.CHANGED)], {}, []),
        ([entry(0, "running"), entry(0, "late")], {}, ["late"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_row(
    entries: list[SlotEntry], changes: dict[str, Any], expected: list[str]
) -> None:
    """Issue 15: never ran, ran late, failed twice, no outcome, a scheduler that was away."""
    row = replace(HOURLY, **changes)
    found = findings(row, ledger_of(entries), entries[::-1], NOW + timedelta(minutes=1))
    assert [one.what for one in found] == expected, found


def test_what_was_missed_is_told_by_its_span_and_a_failure_by_its_reason() -> None:
    away = [*GOOD, entry(0, "missed", reasons.TOO_LATE, count=9)]
    (found,) = findings(HOURLY, ledger_of(away), away[::-1], NOW)
    assert found.text == (
        "9 times were missed while off or asleep, between 2026-03-27 04:00 UTC and 2026-03-27 "
        "12:00 UTC"
    )
    upkeep = replace(HOURLY, made_by="system")
    assert findings(upkeep, ledger_of(away), away[::-1], NOW) == [], "nobody waited for it"
    week_later = NOW + timedelta(days=8)
    old = [one.what for one in findings(HOURLY, ledger_of(away), away[::-1], week_later)]
    assert old == ["undecided"]


def test_what_is_due_once_and_would_be_over_elsewhere_stays() -> None:
    """Nine in Berlin is past nine in Tokyo: it would never be due."""
    nine = replace(
        HOURLY,
        schedule=once("2026-03-27T15:00", "Europe/Berlin"),
        zone="Europe/Berlin",
        has_owners_zone=True,
    )
    east, west = moved(nine, "Asia/Tokyo", NOW), moved(nine, "America/New_York", NOW)
    assert (east.schedule, east.zone, east.has_owners_zone) == (nine.schedule, nine.zone, False)
    assert west.schedule == once("2026-03-27T15:00", "America/New_York")
    assert (west.zone, west.scheduled_at, west.has_owners_zone) == ("America/New_York", NOW, True)


def test_an_interval_goes_on_as_it_was_where_its_owner_moves() -> None:
    every = replace(HOURLY, schedule=EverySchedule(interval_s=60), has_owners_zone=True)
    there = moved(every, "Asia/Tokyo", NOW)
    assert (there.zone, there.scheduled_at) == ("Asia/Tokyo", every.scheduled_at)
    assert words_of_move([every], "UTC", "Asia/Tokyo") == ""
    office = replace(every, active_hours="09:00-17:00")
    assert "'briefing'" in words_of_move([office], "UTC", "Asia/Tokyo")
    many = [replace(office, name=f"row {n:02}") for n in range(12)]
    assert words_of_move(many, "UTC", "Asia/Tokyo").endswith("'row 09', and 2 more.")
