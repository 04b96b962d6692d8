"""A row of the timetable: what it does, its next instants, what became of the past ones."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from vigil.contracts.board.row import CronSchedule

from ....timetable.rows import RowDetail
from ....timetable.slots import SlotListing
from ...visit import Visit

SLOTS_MAX: Final = 50
FIELDS: Final = ("name", "prompt", "zone", "active_hours")


async def show(visit: Visit) -> dict[str, Any]:
    id_ = visit.named("id")
    row, slots = await asyncio.gather(
        visit.api.get(RowDetail, f"/api/cron/{id_}"),
        visit.api.get(SlotListing, "/api/slots", row=id_, limit=SLOTS_MAX),
    )
    cron = row.schedule.expression if isinstance(row.schedule, CronSchedule) else None
    return {"row": row, "slots": slots.slots, "cron": cron}


async def act(visit: Visit) -> str:
    """Change what differs from what was shown. Raises: Problem, 412: it was changed since."""
    id_ = visit.named("id")
    row = await visit.api.get(RowDetail, f"/api/cron/{id_}")
    given = {name: visit.wanted(name).strip() for name in FIELDS}
    change = {name: one for name, one in given.items() if one != getattr(row, name)}
    cron = visit.form.get("cron", "").strip()
    if cron and not (isinstance(row.schedule, CronSchedule) and row.schedule.expression == cron):
        change["cron"] = cron
    revision = visit.number("revision")
    if change:
        await visit.api.send("PATCH", f"/api/cron/{id_}", change, revision=revision)
    return f"/timetable/{id_}"
