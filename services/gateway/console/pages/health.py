"""Health: services, what isn't asked because it failed, what hangs; for admins streams, doctor."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ...http.wire import Readiness, Status
from ...insight.doctor import DoctorView
from ...insight.streams import StreamList
from ...work.health import HealthView
from ...work.letters import DeadLetterPage
from ..shapes.lists.leaf import leaf_of
from ..visit import Visit

LETTERS_MAX: Final = 50
CIRCUITS_MAX: Final = 50
SESSIONS_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    api = visit.api
    ready, status, health, letters, of_all = await asyncio.gather(
        api.checks(Readiness, "/readyz"),
        api.get(Status, "/api/status"),
        api.get(HealthView, "/api/health"),
        api.get(DeadLetterPage, "/api/dead", open=True, limit=LETTERS_MAX),
        _of_all(visit),
    )
    circuits = leaf_of(visit.query, "circuits", CIRCUITS_MAX, ("sessions",))
    sessions = leaf_of(visit.query, "sessions", SESSIONS_MAX, ("circuits",))
    shown: dict[str, Any] = {
        "ready": ready,
        "status": status,
        "circuits": circuits.part(health.circuits),
        "sessions": sessions.part(health.sessions),
        "branches": health.branches,
        "letters": len(letters.letters),
        "has_more": letters.next_after is not None,
    }
    names = await visit.titles(one.session_key for one in shown["sessions"].shown)
    return {**shown, **of_all, "names": names}


async def _of_all(visit: Visit) -> dict[str, Any]:
    """Return what admins see."""
    if not visit.reader.is_admin:
        return {"streams": None, "checks": None}
    streams, doctor = await asyncio.gather(
        visit.api.get(StreamList, "/api/streams"), visit.api.get(DoctorView, "/api/doctor")
    )
    return {"streams": streams.streams, "checks": doctor.checks}


async def act(visit: Visit) -> str:
    """Have a part asked again. Raises: Problem, 403: an admin may."""
    await visit.api.send("POST", "/api/health/reset", {"name": visit.wanted("name")})
    return "/health"
