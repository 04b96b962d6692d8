"""A row of the timetable: what it does, its next instants, what became of the past ones."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from vigil.board.kinds.row import RowDetail
from vigil.contracts.board.row import CronSchedule, EverySchedule, OnceSchedule, Schedule
from vigil.teams import TEAM
from vigil.trust.sources import named

from ....http.problem import Problem
from ....shelf.titles import title_of
from ....timetable.slots import SlotListing
from ....trust.endpoint import PATH as TRUST
from ....trust.endpoint import TrustList
from ...second_thoughts import Confirmation
from ...shapes.days import DAYS, ClickedDays, clicked_of, cron_of
from ...shapes.lists.leaf import leaf_of
from ...shapes.lists.runs import READ_MAX, part_of_runs
from ...visit import Visit

SLOTS_MAX: Final = 50
FIELDS: Final = ("name", "prompt", "zone", "active_hours", "target", "misfire")
SCHEDULES: Final = ("cron", "interval_s", "at")
"""Of which one is filled in; rows that follow others, or choose, are the command's."""


async def show(visit: Visit) -> dict[str, Any]:
    id_, leaf = visit.named("id"), leaf_of(visit.query, "slots", SLOTS_MAX)
    row, slots = await asyncio.gather(
        visit.api.get(RowDetail, f"/api/cron/{id_}"),
        visit.api.get(SlotListing, "/api/slots", row=id_, limit=leaf.asked(READ_MAX)),
    )
    is_own = row.owner in (visit.reader.user, TEAM)
    source = named(row.watch) if row.watch is not None and is_own else ""
    trusted = TrustList(sources=())
    if source:
        trusted = await visit.api.get(TrustList, TRUST, agentId=row.agent_id)
    return {
        "row": row,
        "slots": part_of_runs(slots.slots, leaf),
        "schedule": written(row.schedule),
        "clicked": clicked(row.schedule),
        "days": DAYS,
        "source": source,
        "is_trusted": any(one.source == source for one in trusted.sources),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before it is removed."""
    if visit.wanted("do") != "remove":
        return None
    row = await visit.api.get(RowDetail, f"/api/cron/{visit.named('id')}")
    return Confirmation(
        title="Remove this row?",
        text=f"{row.name!r} is run no more, and can't be brought back. Pausing it can be undone.",
        yes="Remove it",
    )


async def act(visit: Visit) -> str:
    """Change what differs from what was shown, or remove it. Raises: Problem, 412: it was changed
    since."""
    path, revision = f"/api/cron/{visit.named('id')}", visit.number("revision")
    if visit.wanted("do") == "remove":
        await visit.api.send("DELETE", path, revision=revision)
        return "/timetable"
    row = await visit.api.get(RowDetail, path)
    given = given_by(visit)
    shown = {name: getattr(row, name) for name in FIELDS}
    shown["zone"] = "" if row.has_owners_zone else row.zone
    change: dict[str, Any] = {
        name: one for name, one in given.items() if one != shown[name]
    } | schedule_of(visit, row.schedule)
    if change:
        await visit.api.send("PATCH", path, change, revision=revision)
    return f"/timetable/{visit.named('id')}"


def written(schedule: Schedule | None) -> dict[str, str]:
    """Return what the fields of a schedule hold.

    >>> written(EverySchedule(interval_s=60))
    {'cron': '', 'interval_s': '60', 'at': ''}
    """
    shown = dict.fromkeys(SCHEDULES, "")
    match schedule:
        case CronSchedule(expression=expression):
            shown["cron"] = expression
        case EverySchedule(interval_s=interval_s):
            shown["interval_s"] = str(interval_s)
        case OnceSchedule(at=at, wall=wall):
            shown["at"] = wall or at.isoformat()
        case _:
            pass
    return shown


def clicked(schedule: Schedule | None) -> ClickedDays:
    """Return the days and the time that are ticked; for what means something else, none."""
    expression = schedule.expression if isinstance(schedule, CronSchedule) else ""
    return clicked_of(expression)


def given_by(visit: Visit) -> dict[str, str]:
    """Return what a form says besides when; a row that nobody names has the first words of what it
    does for a name."""
    given = {name: visit.wanted(name).strip() for name in FIELDS}
    return given | {"name": given["name"] or title_of(given["prompt"])}


def schedule_of(visit: Visit, shown: Schedule | None) -> dict[str, Any]:
    """Return when a row is to be due, if a form says something else than was shown.

    What is written goes before days that are ticked.

    Raises:
        Problem: 422, seconds must be a whole number; or days are ticked without a time.
    """
    fields = written(shown)
    given = {name: visit.wanted(name).strip() for name in SCHEDULES}
    new: dict[str, Any] = {
        name: one for name, one in given.items() if one not in ("", fields[name])
    }
    if "interval_s" in new:
        new["interval_s"] = visit.number("interval_s")
    days = frozenset(day for day in range(1, 8) if f"day_{day}" in visit.form)
    time = visit.form.get("time", "").strip()
    was = clicked(shown)
    if new or (days, time) == (was.days, was.time) or not (days or time):
        return new
    cron = cron_of(days, time)
    if not cron:
        raise Problem(422, "days and a time belong together, as Mon and 08:30", field="time")
    return {"cron": cron}
