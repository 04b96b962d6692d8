"""One memory: where it comes from, how long it holds, what it's associated with."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import escape

from vigil.memory.wire import MemoryDetail, MemoryGraph

from ..second_thoughts import Confirmation
from ..text import clip, visible
from ..visit import Visit

NAMED_MAX: Final = 100
"""Associated memories that are shown by what they say; of more, by their ids."""


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.query.get("agentId") or None
    id_ = visit.named("id")
    detail = await visit.api.get(MemoryDetail, f"/api/memories/{id_}", agentId=agent)
    named: dict[str, str] = {}
    if detail.edges:
        around = {"id": id_, "depth": 1, "agentId": agent, "limit": NAMED_MAX}
        found = await visit.api.get(MemoryGraph, "/api/memories/graph", **around)
        named = {one.id: one.content for one in found.nodes}
    return {"detail": detail, "named": named}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before it is forgotten."""
    path = f"/api/memories/{visit.named('id')}"
    found = await visit.api.get(MemoryDetail, path, agentId=visit.wanted("agentId"))
    return Confirmation(
        title="Forget this memory?",
        text="It is deleted for good, with what was made of it alone.",
        yes="Forget it, for good",
        exact=(escape(visible(clip(found.memory.content))),),
    )


async def act(visit: Visit) -> str:
    """Forget it, for good. Raises: Problem."""
    agent = visit.wanted("agentId")
    await visit.api.send("DELETE", f"/api/memories/{visit.named('id')}", query={"agentId": agent})
    return visit.back or "/memories"
