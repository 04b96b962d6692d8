"""Agents: which there are, what each keeps up, and their skills; an admin makes another."""

from __future__ import annotations

import asyncio
from typing import Any

from ....http.problem import Problem
from ....insight.agents import AUTHORITIES, AgentsView
from ....timetable.autonomy import AutonomyView
from ....work.skills import SkillList
from ...visit import Visit, segment_of
from ..board.autonomy import switches_of


async def show(visit: Visit) -> dict[str, Any]:
    autonomy, skills, made = await asyncio.gather(
        visit.api.get(AutonomyView, "/api/autonomy"),
        visit.api.get(SkillList, "/api/skills"),
        _made(visit),
    )
    mine = {one.agent_id: one for one in autonomy.cycles if one.owner == visit.reader.user}
    return {
        "switches": switches_of(visit, {*mine, *made}),
        "cycles": mine,
        "may_make": visit.reader.is_admin,
        "authorities": AUTHORITIES,
        "skills": skills.skills,
        "broken": skills.broken,
    }


async def _made(visit: Visit) -> tuple[str, ...]:
    """Return the agents of this home that a person talks with, as its file has them; others than an
    admin learn of one when they talk with it."""
    if not visit.reader.is_admin:
        return ()
    try:
        found = await visit.api.get(AgentsView, "/api/agents")
    except Problem:  # the file is written wrong, or not this gateway's: Settings says so
        return ()
    return tuple(one.name for one in found.agents if one.kind == "personal")


async def act(visit: Visit) -> str:
    """Make an agent. Raises: Problem, 409: there is one of that name."""
    name = segment_of(visit.wanted("name"))
    body = {"name": name, "authority": visit.wanted("authority"), "role": visit.wanted("role")}
    await visit.api.send("POST", "/api/agents", body)
    return f"/agents/{name}?saved=made"
