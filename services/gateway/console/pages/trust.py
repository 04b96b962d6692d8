"""Sources that one trusts: what that means, since when, and the end of it."""

from __future__ import annotations

from typing import Any

from ...trust.endpoint import PATH, TrustList
from ..second_thoughts import with_undo
from ..visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.query.get("agent", "vigil")
    found = await visit.api.get(TrustList, PATH, agentId=agent)
    return {"sources": found.sources, "agent": agent}


async def act(visit: Visit) -> str:
    """Trust a source, or no more. Raises: Problem."""
    agent, undo = visit.form.get("agent", "vigil"), ""
    if visit.wanted("do") == "end":
        id_ = segment_of(visit.wanted("id"))
        await visit.api.send("DELETE", f"{PATH}/{id_}", query={"agentId": agent})
    else:
        wanted = {"source": visit.wanted("source"), "agentId": agent}
        made = await visit.api.send("POST", PATH, wanted)
        undo = f"trust/{made['id']}/{agent}"
    return with_undo(f"/trust?agent={segment_of(agent)}" if agent != "vigil" else "/trust", undo)
