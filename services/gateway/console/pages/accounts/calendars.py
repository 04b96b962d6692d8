"""Calendars: which there are, and how each is by who keeps it."""

from __future__ import annotations

from typing import Any

from ....insight.calendars import CalendarListing
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(CalendarListing, "/api/calendars")
    return {"calendars": found.calendars}
