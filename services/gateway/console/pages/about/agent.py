"""An agent: the files that say who it is, each to be written by an admin."""

from __future__ import annotations

from typing import Any

from ....insight.agent_files import AgentFiles
from ...visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.named("agent")
    found = None
    if visit.reader.is_admin:
        found = await visit.api.get(AgentFiles, f"/api/agents/{agent}/files")
    return {
        "agent": agent,
        "files": found.files if found else None,
        "saved": visit.query.get("saved", ""),
    }


async def act(visit: Visit) -> str:
    """Write a file. Raises: Problem, 409: it was changed since it was shown."""
    agent, name = visit.named("agent"), segment_of(visit.wanted("file"))
    body = {"text": visit.wanted("text"), "digest": visit.wanted("digest")}
    await visit.api.send("PUT", f"/api/agents/{agent}/files/{name}", body)
    return f"/agents/{agent}?saved={name}"
