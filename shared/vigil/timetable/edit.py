"""What a row of the timetable is once somebody changed it, by HTTP or by a tool. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ..calendars.agenda import handle_in
from ..contracts import TimetableRow
from ..contracts.board import (
    AfterSchedule,
    ChosenSchedule,
    CronSchedule,
    EventSchedule,
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
SCHEDULES: Final = ("cron", "interval_s", "at", "after", "calendar")
"""What says when a row is due: one of them."""
LIMITS: Final = ("soonest_s", "latest_s")
OF_SCHEDULES: Final = ("after_on", "after_fact", "after_hook", "event", "before_s", *LIMITS)
"""What goes with one of them."""
NAMED_MAX: Final = 10
"""Rows that are named where it is told of several."""
ONE_OF: Final = (
    "or interval_s, at, after, on_fact or calendar must be given, and only one: it says when"
)


def schedule_of(wanted: Mapping[str, Any], zone: str, now: datetime | None = None) -> Schedule:
    """Return when a row is to be due.

    Args:
        wanted: one of `cron`, `interval_s`, `at`, `after` (the id of a row) and `calendar`; with
            `interval_s` also `soonest_s` and `latest_s`, with `after` also `after_on`, with
            `calendar` also `event` and `before_s`.
        zone: of a cron expression, and of an `at` that is a time on clocks.
        now: from when on an `at` as ``tomorrow 9:00`` is reckoned (`once`).

    Raises:
        InvalidInput: that is none of them, or more than one.

    >>> schedule_of({"interval_s": 3600}, "UTC")
    EverySchedule(interval_s=3600)
    >>> schedule_of({"interval_s": 3600, "latest_s": 86400}, "UTC")
    ChosenSchedule(interval_s=3600, soonest_s=3600, latest_s=86400)
    """
    cron, interval_s, at, after, calendar = map(wanted.get, SCHEDULES)
    given: list[Schedule] = []
    if cron:
        given.append(CronSchedule(expression=cron.strip(), zone=zone))
    if interval_s is not None:
        given.append(_every(interval_s, wanted.get("soonest_s"), wanted.get("latest_s")))
    if at:
        given.append(OnceSchedule(at=at) if isinstance(at, datetime) else once(at, zone, now))
    if after:
        given.append(
            AfterSchedule(
                row=after,
                on=wanted.get("after_on") or "success",
                fact=wanted.get("after_fact") or "",
                hook=wanted.get("after_hook") or "",
            )
        )
    if calendar:
        given.append(
            EventSchedule(
                calendar=calendar,
                event=handle_in(wanted.get("event") or ""),
                before_s=wanted.get("before_s") or 0,
            )
        )
    if len(given) != 1:
        raise InvalidInput("cron", ONE_OF)
    if not calendar and (wanted.get("event") or wanted.get("before_s") is not None):
        raise InvalidInput("calendar", "must be named, if event or before_s says what of it")
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
    is_other = any(name in given for name in ("cron", "at", "after", "calendar"))
    match schedule:
        case EverySchedule() | ChosenSchedule() if not is_other:
            return asdict(schedule) | given
        case EventSchedule(calendar=calendar, event=event, before_s=before_s) if not (
            {"cron", "at", "after", "interval_s"} & given.keys()
        ):
            return {"calendar": calendar, "event": event, "before_s": before_s, **given}
        case AfterSchedule(hook="", row=row, on=on) if not is_other and "interval_s" not in given:
            return {"after": row, "after_on": on, **given}
        case _:
            return given


def changed(
    row: TimetableRow, wanted: Mapping[str, Any], now: datetime, own_zone: str = ""
) -> TimetableRow:
    """Return the row as it is wanted; a new schedule, and a resumed one, hold from now on.

    Args:
        wanted: by the names of the fields of row, work and schedule; None: as it is, and `UNSET`:
            it watches nothing any more. An empty `zone`: its owner's.
        own_zone: that.

    Raises:
        InvalidInput: there is no such schedule.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    of_work = {name: given[name] for name in row.work.__struct_fields__ if name in given}
    if of_work.get("watch") is UNSET:
        of_work["watch"] = None
    of_row: dict[str, Any] = {name: given[name] for name in PLAIN if name in given}
    if "zone" in given:
        of_row |= {"zone": given["zone"] or own_zone, "has_owners_zone": not given["zone"]}
    after = replace(row, work=replace(row.work, **of_work), **of_row)
    names = (*SCHEDULES, *OF_SCHEDULES)
    of_schedule = {name: given[name] for name in names if given.get(name, "") != ""}
    if of_schedule:
        whole = _whole(row.schedule, of_schedule)
        after = replace(after, schedule=schedule_of(whole, after.zone, now))
    else:
        after = replace(after, schedule=_by_clocks_of(after.schedule, after.zone))
    is_resumed = after.is_enabled and not row.is_enabled
    if after.schedule != row.schedule or is_resumed:
        after = replace(after, scheduled_at=now)
    return after


def moved(row: TimetableRow, zone: str, now: datetime) -> TimetableRow:
    """Return a row that goes by its owner's zone once that is another.

    What is due once, and would be over there, stays where it was: or it would never be.
    """
    schedule = _by_clocks_of(row.schedule, zone)
    if isinstance(schedule, OnceSchedule) and schedule != row.schedule and schedule.at <= now:
        return replace(row, has_owners_zone=False)
    since = row.scheduled_at if schedule == row.schedule else now
    return replace(row, zone=zone, schedule=schedule, scheduled_at=since)


def words_of_move(rows: Iterable[TimetableRow], before: str, zone: str) -> str:
    """Say what becomes of somebody's rows as their zone becomes another; empty: nothing."""
    there = [one for one in rows if _goes_by_clocks(one) and not one.is_of_system]
    there = sorted((one for one in there if not one.is_removed), key=lambda one: one.name)
    going = [one.name for one in there if one.has_owners_zone]
    left = [one.name for one in there if not one.has_owners_zone and one.zone == before]
    said = []
    if before != zone and going:
        said.append(f"Of the timetable these go by {zone} from now on: {_names(going)}.")
    if before != zone and left:
        said.append(f"These were made with {before} and stay there: {_names(left)}.")
    return " ".join(said)


def _goes_by_clocks(row: TimetableRow) -> bool:
    return bool(row.active_hours) or bool(getattr(row.schedule, "zone", ""))


def _names(names: list[str]) -> str:
    more = [f"and {len(names) - NAMED_MAX} more"] if len(names) > NAMED_MAX else []
    return ", ".join([*map(repr, names[:NAMED_MAX]), *more])
