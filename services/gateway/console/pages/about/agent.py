"""An agent: what it may do, and the files that say who it is, to be changed by an admin."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from ....insight.agent_files import AgentFiles
from ....insight.agents import AUTHORITIES, AgentsView
from ...second_thoughts import Confirmation
from ...text import clip, visible
from ...visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.named("agent")
    found = one = None
    if visit.reader.is_admin:
        there = (await visit.api.get(AgentsView, "/api/agents")).agents
        one = next((each for each in there if each.name == agent), None)
        found = await visit.api.get(AgentFiles, f"/api/agents/{agent}/files")
    return {
        "agent": agent,
        "one": one,
        "talk": f"{visit.reader.user}:{agent}:main",
        "authorities": AUTHORITIES,
        "files": found.files if found else None,
        "saved": visit.query.get("saved", ""),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a file is written: what stands there is kept nowhere else."""
    if not visit.reader.is_admin or visit.form.get("do") == "change":
        return None  # it isn't theirs, or is changed back as easily
    agent, name = visit.named("agent"), visit.wanted("file")
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
    """Change the agent, or write a file. Raises: Problem, 409: that was changed since it was shown,
    or can't be."""
    agent = visit.named("agent")
    if visit.form.get("do") == "change":
        looks = [line.strip() for line in visit.wanted("looks").splitlines() if line.strip()]
        change = {"authority": visit.wanted("authority"), "model": visit.wanted("model").strip()}
        await visit.api.send("PATCH", f"/api/agents/{agent}", change | {"looks": looks})
        return f"/agents/{agent}?saved=change"
    name = segment_of(visit.wanted("file"))
    body = {"text": visit.wanted("text"), "digest": visit.wanted("digest")}
    await visit.api.send("PUT", f"/api/agents/{agent}/files/{name}", body)
    return f"/agents/{agent}?saved={name}"
