"""What a row of the timetable is once somebody changed it, by HTTP or by a tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from ..contracts import TimetableRow
from ..contracts.board import CronSchedule, EverySchedule, OnceSchedule, Schedule
from ..errors import InvalidInput

PLAIN: Final = (
    "name",
    "zone",
    "misfire",
    "grace_s",
    "active_hours",
    "jitter_s",
    "may_overlap",
    "runs_once",
    "is_enabled",
)
"""What of a row is changed as it is given."""


def schedule_of(
    cron: str | None, interval_s: int | None, at: datetime | None, zone: str
) -> Schedule:
    """Return when a row is to be due.

    Raises:
        InvalidInput: that is none of the three, or more than one.

    >>> schedule_of("", 3600, None, "UTC")
    EverySchedule(interval_s=3600)
    """
    given: list[Schedule] = []
    if cron:
        given.append(CronSchedule(expression=cron.strip(), zone=zone))
    if interval_s is not None:
        given.append(EverySchedule(interval_s=interval_s))
    if at is not None:
        given.append(OnceSchedule(at=at))
    if len(given) != 1:
        raise InvalidInput("cron", "give one of cron, interval_s and at")
    return given[0]


def changed(row: TimetableRow, wanted: Mapping[str, Any], now: datetime) -> TimetableRow:
    """Return the row as it is wanted; a new schedule, and a resumed one, hold from now on.

    Args:
        wanted: by the names of the fields of row, work and schedule; None: as it is, and `UNSET`:
            it watches nothing any more.

    Raises:
        InvalidInput: there is no such schedule.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    of_work = {name: given[name] for name in row.work.__struct_fields__ if name in given}
    if of_work.get("watch") is UNSET:
        of_work["watch"] = None
    of_row = {name: given[name] for name in PLAIN if name in given}
    after = replace(row, work=replace(row.work, **of_work), **of_row)
    cron, interval_s, at = given.get("cron"), given.get("interval_s"), given.get("at")
    if cron or interval_s is not None or at is not None:
        after = replace(after, schedule=schedule_of(cron, interval_s, at, after.zone))
    elif isinstance(after.schedule, CronSchedule):
        after = replace(after, schedule=replace(after.schedule, zone=after.zone))
    is_resumed = after.is_enabled and not row.is_enabled
    if after.schedule != row.schedule or is_resumed:
        after = replace(after, scheduled_at=now)
    return after
