"""Grants: what agents may do without asking, how often they did, and its end."""

from __future__ import annotations

from typing import Any, Final

from ....work.grants import GrantList
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    state = "all" if visit.query.get("state") == "all" else "standing"
    found = await visit.api.get(GrantList, "/api/grants", state=state, limit=SHOWN_MAX)
    is_full = len(found.grants) == SHOWN_MAX
    return {"is_full": is_full, "grants": found.grants, "state": state}


async def act(visit: Visit) -> str:
    """End one. Raises: Problem."""
    await visit.api.send("DELETE", f"/api/grants/{segment_of(visit.wanted('id'))}")
    return "/grants"
