"""Agents: which there are, what each keeps up, and their skills; an admin makes another."""

from __future__ import annotations

import asyncio
from typing import Any

from ....insight.agents import AUTHORITIES
from ....timetable.autonomy import AutonomyView
from ....work.skills import SkillList
from ...visit import Visit, segment_of
from ..board.autonomy import switches_of


async def show(visit: Visit) -> dict[str, Any]:
    autonomy, skills = await asyncio.gather(
        visit.api.get(AutonomyView, "/api/autonomy"), visit.api.get(SkillList, "/api/skills")
    )
    mine = {one.agent_id: one for one in autonomy.cycles if one.owner == visit.reader.user}
    return {
        "switches": switches_of(visit, mine),
        "cycles": mine,
        "may_make": visit.reader.is_admin,
        "authorities": AUTHORITIES,
        "skills": skills.skills,
        "broken": skills.broken,
    }


async def act(visit: Visit) -> str:
    """Make an agent. Raises: Problem, 409: there is one of that name."""
    name = segment_of(visit.wanted("name"))
    body = {"name": name, "authority": visit.wanted("authority"), "role": visit.wanted("role")}
    await visit.api.send("POST", "/api/agents", body)
    return f"/agents/{name}?saved=made"
