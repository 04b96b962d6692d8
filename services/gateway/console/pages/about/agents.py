"""Agents: which there are, what each keeps up, and the skills that they have on file."""

from __future__ import annotations

import asyncio
from typing import Any

from ....timetable.autonomy import AutonomyView
from ....work.jobs import SkillList
from ...visit import Visit
from ..board.autonomy import switches_of


async def show(visit: Visit) -> dict[str, Any]:
    autonomy, skills = await asyncio.gather(
        visit.api.get(AutonomyView, "/api/autonomy"), visit.api.get(SkillList, "/api/skills")
    )
    mine = {one.agent_id: one for one in autonomy.cycles if one.owner == visit.reader.user}
    return {
        "switches": switches_of(visit, mine),
        "cycles": mine,
        "skills": skills.skills,
        "broken": skills.broken,
    }
