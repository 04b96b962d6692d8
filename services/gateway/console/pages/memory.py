"""One memory: where it comes from, how long it holds, what it's associated with."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from vigil.memory.wire import MemoryDetail

from ..second_thoughts import Confirmation
from ..text import clip, visible
from ..visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.query.get("agentId") or None
    path = f"/api/memories/{visit.named('id')}"
    return {"detail": await visit.api.get(MemoryDetail, path, agentId=agent)}


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
