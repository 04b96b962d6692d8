"""What a row of the timetable is once somebody changed it, by HTTP or by a tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ..contracts import TimetableRow
from ..contracts.board import (
    AfterSchedule,
    ChosenSchedule,
    CronSchedule,
    EverySchedule,
    OnceSchedule,
    Schedule,
)
from ..errors import InvalidInput
from .instants.once import once

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
SCHEDULES: Final = ("cron", "interval_s", "at", "after")
"""What says when a row is due: one of them."""
LIMITS: Final = ("soonest_s", "latest_s")
OF_SCHEDULES: Final = ("after_on", *LIMITS)
"""What goes with one of them."""


def schedule_of(wanted: Mapping[str, Any], zone: str) -> Schedule:
    """Return when a row is to be due.

    Args:
        wanted: one of `cron`, `interval_s`, `at` and `after` (the id of a row); with `interval_s`
            also `soonest_s` and `latest_s`, with `after` also `after_on`.
        zone: of a cron expression, and of an `at` that is a time on clocks.

    Raises:
        InvalidInput: that is none of them, or more than one.

    >>> schedule_of({"interval_s": 3600}, "UTC")
    EverySchedule(interval_s=3600)
    >>> schedule_of({"interval_s": 3600, "latest_s": 86400}, "UTC")
    ChosenSchedule(interval_s=3600, soonest_s=3600, latest_s=86400)
    """
    cron, interval_s, at, after = map(wanted.get, SCHEDULES)
    given: list[Schedule] = []
    if cron:
        given.append(CronSchedule(expression=cron.strip(), zone=zone))
    if interval_s is not None:
        given.append(_every(interval_s, wanted.get("soonest_s"), wanted.get("latest_s")))
    if at:
        given.append(OnceSchedule(at=at) if isinstance(at, datetime) else once(at, zone))
    if after:
        given.append(AfterSchedule(row=after, on=wanted.get("after_on") or "success"))
    if len(given) != 1:
        raise InvalidInput("cron", "give one of cron, interval_s, at and after")
    if interval_s is None and any(wanted.get(name) is not None for name in LIMITS):
        raise InvalidInput("interval_s", "must be given if runs are to choose when the next is")
    if not after and wanted.get("after_on"):
        raise InvalidInput("after", "must say which row, if after_on says which of its ends")
    return given[0]


def _every(
    interval_s: int, soonest_s: int | None, latest_s: int | None
) -> EverySchedule | ChosenSchedule:
    if soonest_s is None and latest_s is None:
        return EverySchedule(interval_s=interval_s)
    return ChosenSchedule(
        interval_s=interval_s,
        soonest_s=interval_s if soonest_s is None else soonest_s,
        latest_s=interval_s if latest_s is None else latest_s,
    )


def _by_clocks_of(schedule: Schedule, zone: str) -> Schedule:
    """Return a schedule on the clocks of that zone; one that goes by none as it is."""
    if zone == getattr(schedule, "zone", zone):
        return schedule
    match schedule:
        case CronSchedule():
            return replace(schedule, zone=zone)
        case OnceSchedule(wall=wall) if wall:
            return once(wall, zone)
        case _:
            return schedule


def _whole(schedule: Schedule, given: dict[str, Any]) -> dict[str, Any]:
    """Return what is wanted of a schedule, with what stays as it is of one of the same kind."""
    is_other = any(name in given for name in ("cron", "at", "after"))
    match schedule:
        case EverySchedule() | ChosenSchedule() if not is_other:
            return asdict(schedule) | given
        case AfterSchedule(row=row, on=on) if not is_other and "interval_s" not in given:
            return {"after": row, "after_on": on, **given}
        case _:
            return given


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
    names = (*SCHEDULES, *OF_SCHEDULES)
    of_schedule = {name: given[name] for name in names if given.get(name, "") != ""}
    if of_schedule:
        whole = _whole(row.schedule, of_schedule)
        after = replace(after, schedule=schedule_of(whole, after.zone))
    else:
        after = replace(after, schedule=_by_clocks_of(after.schedule, after.zone))
    is_resumed = after.is_enabled and not row.is_enabled
    if after.schedule != row.schedule or is_resumed:
        after = replace(after, scheduled_at=now)
    return after
