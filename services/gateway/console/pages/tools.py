"""Tools: what agents can be offered, by source, with the risk; and what is held back, and why."""

from __future__ import annotations

from typing import Any

from ...work.tools import ToolList
from ..shapes.differences import differences
from ..visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(ToolList, "/api/tools")
    changed = {
        (one.source, tool.name): differences(
            found.approved[one.source][tool.name], tool.description
        )
        for one in found.sources
        for tool in one.held
    }
    return {"sources": found.sources, "changed": changed, "approved": found.approved}


async def act(visit: Visit) -> str:
    """Approve what a tool that is held back was shown to say of itself. Raises: Problem, 409: it
    says something else by now; 403: an admin may."""
    path = f"/api/tools/{segment_of(visit.wanted('source'))}/approvals"
    tools = {visit.wanted("tool"): visit.wanted("digest")}
    await visit.api.send("POST", path, {"tools": tools})
    return "/tools"
