"""One memory: where it comes from, how long it holds, what it's associated with."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from markupsafe import escape

from vigil.memory.wire import MemoryDetail, MemoryGraph

from ...http.problem import Problem
from ...why.answer import WhyAnswer
from ..second_thoughts import Confirmation
from ..shapes.lists.leaf import leaf_of
from ..text import clip, visible
from ..visit import Visit

NAMED_MAX: Final = 100
"""Associated memories that are shown by what they say; of more, by their ids."""


ORIGINS_MAX: Final = 12
_ID: Final = re.compile(r"[0-9a-f]{32}")


class MemoryOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a memory was made of."""

    id: str
    text: str = ""
    """What it says; empty: it isn't kept any more."""
    page: str = ""
    """Where it stands, below the console's path."""
    at: datetime | None = None


async def show(visit: Visit) -> dict[str, Any]:
    agent = visit.query.get("agentId") or None
    id_ = visit.named("id")
    detail = await visit.api.get(MemoryDetail, f"/api/memories/{id_}", agentId=agent)
    named: dict[str, str] = {}
    if detail.edges:
        around = {"id": id_, "depth": 1, "agentId": agent, "limit": NAMED_MAX}
        found = await visit.api.get(MemoryGraph, "/api/memories/graph", **around)
        named = {one.id: one.content for one in found.nodes}
    memory = detail.memory
    said_in = f"{detail.user_id}:{detail.agent_id}:{memory.thread}" if memory.thread else ""
    listed = leaf_of(visit.query, "of", ORIGINS_MAX, ("agentId",)).part(memory.provenance)
    origins = await asyncio.gather(*(_origin(visit, one, agent, said_in) for one in listed.shown))
    return {
        "detail": detail,
        "named": named,
        "listed": listed,
        "origins": origins,
        "said_in": said_in,
        "names": await visit.titles([said_in] if said_in else []),
    }


async def _origin(visit: Visit, id_: str, agent: str | None, said_in: str) -> MemoryOrigin:
    """Return a memory that another was made of, or what was said or done before it was saved."""
    try:
        if _ID.fullmatch(id_):
            found = await visit.api.get(MemoryDetail, f"/api/memories/{id_}", agentId=agent)
            query = urlencode({"agentId": found.agent_id})
            return MemoryOrigin(
                id=id_,
                text=found.memory.content,
                page=f"/memories/{id_}?{query}",
                at=found.memory.created_at,
            )
    except Problem:
        pass  # then it is no memory
    try:
        story = await visit.api.get(WhyAnswer, f"/api/why/{id_}", session=said_in or None)
    except Problem:
        return MemoryOrigin(id=id_)
    step = next((one for one in story.steps if one.id == id_), None)
    if step is None:
        return MemoryOrigin(id=id_, text=story.summary)
    is_said = step.what == "message.in" and story.session_key
    place = f"/conversations/{story.session_key}?after={step.seq - 1}#m-{step.seq}"
    return MemoryOrigin(id=id_, text=step.text, page=place if is_said else "", at=step.at)


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
