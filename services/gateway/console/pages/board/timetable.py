"""Timetable: what recurs, when it's next, and what became of the instants at which it was due."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from vigil.contracts.board.slot import SlotState

from ....timetable.rows import RowListing
from ....timetable.slots import SlotListing
from ...visit import Visit, segment_of

SLOTS_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    state = visit.query.get("state") or None
    rows, slots = await asyncio.gather(
        visit.api.get(RowListing, "/api/cron", all=True),
        visit.api.get(SlotListing, "/api/slots", state=state, limit=SLOTS_MAX),
    )
    return {
        "rows": rows.rows,
        "slots": slots.slots,
        "names": {one.id: one.name for one in rows.rows},
        "state": state or "",
        "states": ("", *get_args(SlotState)),
    }


async def act(visit: Visit) -> str:
    """Run a row at once, pause it, or let it go on. Raises: Problem."""
    id_ = segment_of(visit.wanted("id"))
    if visit.wanted("do") == "run":
        await visit.api.send("POST", f"/api/cron/{id_}/runs")
    else:
        is_on = visit.wanted("do") == "resume"
        revision = visit.number("revision")
        await visit.api.send("PATCH", f"/api/cron/{id_}", {"is_enabled": is_on}, revision=revision)
    return f"/timetable/{id_}" if "one" in visit.form else "/timetable"
