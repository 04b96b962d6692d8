"""One memory: where it comes from, how long it holds, what it's associated with."""

from __future__ import annotations

from typing import Any

from vigil.memory.wire import MemoryDetail

from ..visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.query.get("agentId") or None
    path = f"/api/memories/{visit.named('id')}"
    return {"detail": await visit.api.get(MemoryDetail, path, agentId=agent)}


async def act(visit: Visit) -> str:
    """Forget it, for good. Raises: Problem."""
    agent = visit.wanted("agentId")
    await visit.api.send("DELETE", f"/api/memories/{visit.named('id')}", query={"agentId": agent})
    return "/memories"
