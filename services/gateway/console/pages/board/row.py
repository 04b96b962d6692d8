"""A row of the timetable: what it does, its next instants, what became of the past ones."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ....timetable.rows import RowDetail
from ....timetable.slots import SlotListing
from ...visit import Visit

SLOTS_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    id_ = visit.named("id")
    row, slots = await asyncio.gather(
        visit.api.get(RowDetail, f"/api/cron/{id_}"),
        visit.api.get(SlotListing, "/api/slots", row=id_, limit=SLOTS_MAX),
    )
    return {"row": row, "slots": slots.slots}
