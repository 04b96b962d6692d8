"""Tools: what agents can be offered, by source, with the risk; and what is held back, and why."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from ...work.tools import ToolList
from ..second_thoughts import Confirmation
from ..shapes.differences import differences
from ..text import clip, visible
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


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a tool is offered that was held back: a model that saw it can't unsee it."""
    if not visit.reader.is_admin:
        return None  # it isn't theirs
    name, digest = visit.wanted("tool"), visit.wanted("digest")
    sources = (await visit.api.get(ToolList, "/api/tools")).sources
    held = [tool for one in sources if one.source == visit.wanted("source") for tool in one.held]
    found = [one for one in held if (one.name, one.digest) == (name, digest)]
    if not found:
        return None  # the API says why not
    return Confirmation(
        title=f"Offer {name} to agents?",
        text="They see what it says of itself, and may call it, from now on. Its server can be "
        "switched off, but what they read they know.",
        yes="Approve it",
        exact=(escape(visible(clip(found[0].description))),),
    )


async def act(visit: Visit) -> str:
    """Approve what a tool that is held back was shown to say of itself. Raises: Problem, 409: it
    says something else by now; 403: an admin may."""
    path = f"/api/tools/{segment_of(visit.wanted('source'))}/approvals"
    tools = {visit.wanted("tool"): visit.wanted("digest")}
    await visit.api.send("POST", path, {"tools": tools})
    return "/tools"
