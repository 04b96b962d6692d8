"""goal_report: a goal told in the closed form that its person named for it (FLOW F-9). Pure.

It changes nothing of the goal, and no word of what was read gets into it: so any loop may, also one
that outside content sways, of a goal that it doesn't.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from vigil.contracts import BoardChangePayload
from vigil.contracts.arguments import Arguments
from vigil.facts.taken import read

from ..core.draft import Draft
from ..core.tools import calls
from ..core.tools.declaration import Answer, OwnCall, tool
from .goals import PROFILES, Id, read_goal


class GoalReport(Arguments, frozen=True, kw_only=True):
    """Tell how a goal stands by the facts that it names, as goal_list shows them with the form of
    each. Leave out what you don't know. Later prompts have them."""

    id: Id
    facts: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]


def _obstacle(given: GoalReport, call: OwnCall, draft: Draft) -> str | None:
    found = read_goal(draft, given.id)
    if found is None:
        return f"There is no goal {given.id}."
    if not found.goal.facts:
        return (
            "This goal names no facts; its person can: `vigil goals change ID --fact NAME=SHAPE`."
        )
    return calls.refusal(draft, call.use.input)


@tool(risk="write", profiles=PROFILES, obstacle=_obstacle, reads=("goals",), aims={"id": "which"})
def goal_report(given: GoalReport, call: OwnCall, draft: Draft) -> Answer:
    """Have what fits taken, and wait for what the board says."""
    found = read_goal(draft, given.id)
    if found is None:
        raise AssertionError(f"{given.id} is not there")
    fitted = read(found.goal.facts, given.facts, draft.moment.now)
    left = "; ".join(
        f"{name} {why}" for name, why in fitted.left_out.items() if name in given.facts
    )
    if not fitted.values:
        return f"Noted: nothing. Left out: {left or 'what this goal does not name'}.", True
    payload = BoardChangePayload(entity=found.goal, facts=fitted.values, why=left)
    return calls.ask_board(draft, call.use, payload)
