"""Goals: what an agent pursues, and where each stands."""

from __future__ import annotations

from typing import Any, Final, get_args

from vigil.contracts.board.vocabulary import GoalStatus

from ....board.goals import GoalListing
from ...visit import Visit

SHOWN_MAX: Final = 100
STATUSES: Final = ("", *get_args(GoalStatus))


async def show(visit: Visit) -> dict[str, Any]:
    status = visit.query.get("status") or None
    found = await visit.api.get(GoalListing, "/api/goals", status=status, limit=SHOWN_MAX)
    is_full = len(found.goals) == SHOWN_MAX
    return {"is_full": is_full, "goals": found.goals, "status": status or "", "statuses": STATUSES}


async def act(visit: Visit) -> str:
    """Set one. Raises: Problem."""
    goal = {"description": visit.wanted("description")}
    made = await visit.api.send("POST", "/api/goals", goal)
    return f"/goals/{made['id']}"
