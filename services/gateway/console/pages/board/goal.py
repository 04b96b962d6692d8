"""A goal: when it's reached, how it's pursued, and where it may go."""

from __future__ import annotations

from typing import Any

from vigil.board.kinds.goal import GoalDetail
from vigil.goals.lifecycle import MOVES

from ...second_thoughts import Confirmation, with_undo
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    return {"goal": await visit.api.get(GoalDetail, f"/api/goals/{visit.named('id')}")}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before it goes where nobody brings it back from."""
    return await visit.ask_to_move("goals", visit.named("id"), MOVES)


async def act(visit: Visit) -> str:
    """Move it. Raises: Problem, 412: it isn't as it was shown."""
    undo = await visit.move("goals", visit.named("id"))
    return with_undo(f"/goals/{visit.named('id')}", undo)
