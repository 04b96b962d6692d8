"""Models: which one answers, what each tier asked and cost, and which isn't asked as it failed."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ....http.wire import Status
from ....work.cost import Costs
from ....work.health import HealthView
from ...visit import Visit

DAYS: Final = 30
PREFIX: Final = "model:"


async def show(visit: Visit) -> dict[str, Any]:
    status, costs, health = await asyncio.gather(
        visit.api.get(Status, "/api/status"),
        visit.api.get(Costs, "/api/cost", days=DAYS, by=["tier", "model"]),
        visit.api.get(HealthView, "/api/health"),
    )
    circuits = [one for one in health.circuits if one.name.startswith(PREFIX)]
    return {
        "in_use": status.model,
        "lines": sorted(costs.lines, key=lambda one: -one.calls),
        "failing": [one for one in circuits if one.state != "closed"],
        "days": DAYS,
    }
