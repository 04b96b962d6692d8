"""Grants: what agents may do without asking, how often they did, and its end."""

from __future__ import annotations

from typing import Any

from ....work.grants import GrantList
from ...visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    state = "all" if visit.query.get("state") == "all" else "standing"
    found = await visit.api.get(GrantList, "/api/grants", state=state)
    return {"grants": found.grants, "state": state}


async def act(visit: Visit) -> str:
    """End one. Raises: Problem."""
    await visit.api.send("DELETE", f"/api/grants/{segment_of(visit.wanted('id'))}")
    return "/grants"
