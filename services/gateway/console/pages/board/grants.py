"""Grants: what agents may do without asking, how often they did, and its end."""

from __future__ import annotations

from typing import Any, Final

from vigil.board.kinds.grant import GrantList, GrantView

from ...second_thoughts import Confirmation
from ...shapes.lists.leaf import leaf_of
from ...visit import Visit, segment_of

SHOWN_MAX: Final = 25
READ_MAX: Final = 500
"""How many can be asked for at once."""


async def show(visit: Visit) -> dict[str, Any]:
    state = "all" if visit.query.get("state") == "all" else "standing"
    leaf = leaf_of(visit.query, "after", SHOWN_MAX, ("state",))
    found = await visit.api.get(GrantList, "/api/grants", state=state, limit=leaf.asked(READ_MAX))
    listed = leaf.part(found.grants, READ_MAX)
    keys = [one.session_key for one in listed.shown if one.session_key]
    return {"grants": listed, "state": state, "names": await visit.titles(keys)}


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
