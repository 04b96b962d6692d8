"""An agent: the files that say who it is, each to be written by an admin."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from ....insight.agent_files import AgentFiles
from ...second_thoughts import Confirmation
from ...text import clip, visible
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


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a file is written: what stands there is kept nowhere else."""
    agent, name = visit.named("agent"), visit.wanted("file")
    if not visit.reader.is_admin:
        return None  # it isn't theirs
    files = (await visit.api.get(AgentFiles, f"/api/agents/{agent}/files")).files
    found = next((one for one in files if one.name == name), None)
    if found is None or not found.is_there:
        return None  # nothing is lost
    return Confirmation(
        title=f"Write {name} anew?",
        text="What stands there now, shown here, is kept nowhere else.",
        yes="Write it",
        exact=(escape(visible(clip(found.text))),),
    )


async def act(visit: Visit) -> str:
    """Write a file. Raises: Problem, 409: it was changed since it was shown."""
    agent, name = visit.named("agent"), segment_of(visit.wanted("file"))
    body = {"text": visit.wanted("text"), "digest": visit.wanted("digest")}
    await visit.api.send("PUT", f"/api/agents/{agent}/files/{name}", body)
    return f"/agents/{agent}?saved={name}"
