"""Grants: what agents may do without asking, how often they did, and its end."""

from __future__ import annotations

from typing import Any, Final

from vigil.board.kinds.grant import GrantList, GrantView

from ...second_thoughts import Confirmation
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    state = "all" if visit.query.get("state") == "all" else "standing"
    found = await visit.api.get(GrantList, "/api/grants", state=state, limit=SHOWN_MAX)
    is_full = len(found.grants) == SHOWN_MAX
    return {"is_full": is_full, "grants": found.grants, "state": state}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before one is ended: it can't be taken up again, only given anew."""
    path = f"/api/grants/{segment_of(visit.wanted('id'))}"
    found = await visit.api.get(GrantView, path)
    return Confirmation(
        title=f"End what {found.agent_id} may do with {found.tool}?",
        text="It asks for each such call from now on.",
        yes="End it",
    )


async def act(visit: Visit) -> str:
    """End one. Raises: Problem."""
    await visit.api.send("DELETE", f"/api/grants/{segment_of(visit.wanted('id'))}")
    return "/grants"
