"""Health: services, what isn't asked because it failed, and dead letters to be tried again."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ...http.wire import Readiness, Status
from ...work.health import HealthView
from ...work.letters import DeadLetterPage
from ..visit import Visit, segment_of

LETTERS_MAX: Final = 50


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
        "circuits": health.circuits,
        "letters": letters.letters,
        "has_more": letters.next_after is not None,
    }


async def act(visit: Visit) -> str:
    """Have a part asked again, or end a dead letter. Raises: Problem."""
    match visit.wanted("do"):
        case "reset":
            name = {"name": visit.wanted("name")}
            await visit.api.send("POST", "/api/health/reset", name)
        case "requeue" | "discard" as what:
            id_ = segment_of(visit.wanted("id"))
            await visit.api.send("POST", f"/api/dead/{id_}/{what}")
    return "/health"
