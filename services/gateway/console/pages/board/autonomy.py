"""Autonomy: how agents keep up by themselves, what their cycles found, and the bulletin."""

from __future__ import annotations

import asyncio
from typing import Any

from ....board.bulletins import BulletinListing
from ....timetable.autonomy import AutonomyView
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    autonomy, found = await asyncio.gather(
        visit.api.get(AutonomyView, "/api/autonomy"),
        visit.api.get(BulletinListing, "/api/bulletin", history=1),
    )
    return {"autonomy": autonomy, "bulletins": found.bulletins}


async def act(visit: Visit) -> str:
    """Switch it on or off, or set the interval, for all. Raises: Problem, 403: an admin may."""
    change: dict[str, Any] = {}
    if "enabled" in visit.form:
        change["autonomy_enabled"] = visit.form["enabled"] == "on"
    if "interval" in visit.form:
        change["autonomy_interval_secs"] = visit.number("interval")
    revision = visit.number("revision")
    await visit.api.send("PATCH", "/api/autonomy", change, revision=revision)
    return "/autonomy"
