"""A goal: when it's reached, how it's pursued, and where it may go."""

from __future__ import annotations

from typing import Any

from ....board.goals import GoalDetail
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    return {"goal": await visit.api.get(GoalDetail, f"/api/goals/{visit.named('id')}")}


async def act(visit: Visit) -> str:
    """Move it. Raises: Problem, 412: it isn't as it was shown."""
    await visit.move(f"/api/goals/{visit.named('id')}")
    return f"/goals/{visit.named('id')}"
