"""Health: services, and what isn't asked for a while because it failed."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ...http.wire import Readiness, Status
from ...work.health import HealthView
from ...work.letters import DeadLetterPage
from ..visit import Visit

LETTERS_MAX: Final = 50
CIRCUITS_MAX: Final = 100


async def show(visit: Visit) -> dict[str, Any]:
    api = visit.api
    ready, status, health, letters = await asyncio.gather(
        api.checks(Readiness, "/readyz"),
        api.get(Status, "/api/status"),
        api.get(HealthView, "/api/health"),
        api.get(DeadLetterPage, "/api/dead", open=True, limit=LETTERS_MAX),
    )
    return {
        "ready": ready,
        "status": status,
        "circuits": health.circuits[:CIRCUITS_MAX],
        "letters": len(letters.letters),
        "has_more": letters.next_after is not None,
    }


async def act(visit: Visit) -> str:
    """Have a part asked again. Raises: Problem, 403: an admin may."""
    await visit.api.send("POST", "/api/health/reset", {"name": visit.wanted("name")})
    return "/health"
