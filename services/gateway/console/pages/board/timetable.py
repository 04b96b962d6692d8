"""Timetable: what recurs, when it's next, and what became of the instants at which it was due."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any, Final, get_args

from vigil.board.kinds.row import RowListing
from vigil.contracts.board.slot import SlotState

from ....http.problem import Problem
from ....timetable.feed import LinkList
from ....timetable.slots import SlotListing
from ...second_thoughts import Confirmation, with_undo
from ...shapes.calendar import monday_of, week_of
from ...shapes.days import DAYS, WORKDAYS, ClickedDays
from ...shapes.lists.leaf import leaf_of
from ...shapes.lists.runs import READ_MAX, part_of_runs
from ...visit import Visit, segment_of
from .row import given_by, schedule_of, written

SLOTS_MAX: Final = 80
"""Each is an exchange with the broker."""
ROWS_MAX: Final = 40
LINKS_SHOWN_MAX: Final = 50
KEPT: Final = ("week", "state")
LINKS: Final = "/api/calendar-links"
USUAL: Final = "08:00"
"""When a new row is due unless another time is chosen."""
WEEK: Final = timedelta(days=7)


async def show(visit: Visit) -> dict[str, Any]:
    state = visit.query.get("state") or None
    ran = leaf_of(visit.query, "slots", SLOTS_MAX, (*KEPT, "rows"))
    first = monday_of(_day_of(visit))
    # A week that is over may be long ago.
    read = (
        READ_MAX if first + WEEK <= visit.now.astimezone(visit.zone).date() else ran.asked(READ_MAX)
    )
    rows, slots, links = await asyncio.gather(
        visit.api.get(RowListing, "/api/cron", all=True),
        visit.api.get(SlotListing, "/api/slots", state=_in_ledger(state), limit=read),
        visit.api.get(LinkList, LINKS),
    )
    made = leaf_of(visit.query, "rows", ROWS_MAX, (*KEPT, "slots"))
    given = leaf_of(visit.query, "links", LINKS_SHOWN_MAX, KEPT)
    oldest = slots.slots[-1].due_at.astimezone(visit.zone) if len(slots.slots) >= read else None
    return {
        "rows": made.part(visit.own_first(rows.rows)),
        "slots": part_of_runs(slots.slots, ran, state or ""),
        "oldest": oldest if oldest is not None and oldest.date() >= first else None,
        "state": state or "",
        "states": ("", *get_args(SlotState)),
        "week": week_of(first, rows.rows, slots.slots, visit.now, visit.zone),
        "before": (first - WEEK).isoformat(),
        "after": (first + WEEK).isoformat(),
        "own_zone": visit.person.timezone,
        "nothing": written(None),
        "days": DAYS,
        "usual": ClickedDays(days=WORKDAYS, time=USUAL),
        "links": given.part(links.links),
        "link": None,
    }


def _in_ledger(state: str | None) -> str | None:
    """Return the state to ask the ledger for: what runs is known by what hasn't ended."""
    return None if state == "running" else state


def _day_of(visit: Visit) -> date:
    wanted = visit.query.get("week", "")
    if not wanted:
        return visit.now.astimezone(visit.zone).date()
    try:
        found = date.fromisoformat(wanted)
    except ValueError as error:
        raise Problem(422, "week must be a day, as 2026-11-25", field="week") from error
    if not date(1971, 1, 1) < found < date(9000, 1, 1):
        raise Problem(422, "week must be a day of this age", field="week")
    return found


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a link is ended: what subscribed to it needs a new one."""
    if visit.wanted("do") != "unlink":
        return None
    return Confirmation(
        title="End this link?",
        text="The calendar that subscribed to it is told nothing more, and needs a new one.",
        yes="End it",
    )


async def act(visit: Visit) -> str | dict[str, Any]:
    """Make a row, run one at once, pause it, or let it go on; make or end the link of a calendar.
    Raises: Problem."""
    if visit.wanted("do") == "link":
        made = await visit.api.send("POST", LINKS, {"name": visit.wanted("name").strip()})
        return {"link": f"{visit.gateway}{made['path']}"}
    if visit.wanted("do") == "unlink":
        await visit.api.send("DELETE", f"{LINKS}/{segment_of(visit.wanted('link'))}")
        return "/timetable"
    if visit.wanted("do") == "make":
        row = given_by(visit) | schedule_of(visit, None)
        made = await visit.api.send("POST", "/api/cron", row)
        return f"/timetable/{made['id']}"
    id_, undo = segment_of(visit.wanted("id")), ""
    if visit.wanted("do") == "run":
        await visit.api.send("POST", f"/api/cron/{id_}/runs")
    else:
        is_on = visit.wanted("do") == "resume"
        revision = visit.number("revision")
        change, path = {"is_enabled": is_on}, f"/api/cron/{id_}"
        made = await visit.api.send("PATCH", path, change, revision=revision)
        undo = f"row/{id_}/{'pause' if is_on else 'resume'}/{made['revision']}"
    return with_undo(f"/timetable/{id_}" if "one" in visit.form else "/timetable", undo)
