"""What became of a goal, a preference or an action, by its revisions on the board. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from vigil.contracts.board import BoardAction, BoardGoal, BoardPreference
from vigil.contracts.board.action import ActionOutcome
from vigil.contracts.board.vocabulary import GOALS, GoalStatus
from vigil.contracts.vocabulary import Ending

from .entries import AGENT, KeptFact, Written
from .text import clip

Pursuit = BoardGoal | BoardPreference | BoardAction
_GOALS: Final[dict[GoalStatus, Ending]] = {
    "active": "pending",
    "paused": "pending",
    "completed": "done",
    "failed": "failed",
    "archived": "cancelled",
}
_ACTIONS: Final[dict[ActionOutcome, Ending]] = {
    "pending": "pending",
    "success": "done",
    "failed": "failed",
    "unknown": "ambiguous",
}


def of_goal(revisions: Sequence[Written[BoardGoal]], *, is_whole: bool) -> Iterator[KeptFact]:
    """Tell a goal's revisions. `is_whole`: the first made it."""
    before: BoardGoal | None = None
    for one in revisions:
        goal = one.entity
        name = "goal.moved" if before is None or before.status != goal.status else "goal.changed"
        if before is None and is_whole:
            name = "goal.made"
        fields = {
            "title": clip(goal.description, 80),
            "status": goal.status,
            "is_tainted": goal.is_tainted,
        }
        summary = f"The goal {GOALS[goal.status].step}."
        yield _fact(one, name, fields, _GOALS[goal.status], summary)
        before = goal


def of_preference(revisions: Sequence[Written[BoardPreference]]) -> Iterator[KeptFact]:
    """Tell a preference's revisions."""
    for one in revisions:
        preference = one.entity
        value = clip(msgspec.json.encode(preference.value).decode())
        lesson = preference.learned_from[-1] if preference.learned_from else None
        fields = {
            "title": preference.key,
            "value": f"not {value}" if preference.is_negative else value,
            "confidence": preference.confidence,
            "lesson": clip(lesson.text) if lesson is not None else "",
        }
        if preference.is_removed:
            yield _fact(one, "preference.removed", fields, "cancelled", "It was removed.")
        else:
            name = "preference.corrected" if preference.is_negative else "preference.taught"
            summary = "It is what the agent goes by, as sure as it is: {confidence}."
            yield _fact(one, name, fields, "done", summary)


def of_action(revisions: Sequence[Written[BoardAction]]) -> Iterator[KeptFact]:
    """Tell an action's revisions."""
    before: BoardAction | None = None
    for one in revisions:
        action = one.entity
        said = action.feedback
        if before is not None and said is not None and said != before.feedback:
            name = "action.liked" if said.is_good else "action.disliked"
        else:
            name = "action.taken" if action.outcome == "pending" else "action.ended"
        fields = {
            "title": action.type,
            "what": clip(action.description),
            "outcome": action.outcome,
            "said": clip(said.text) if said is not None else "",
            "is_tainted": action.is_tainted,
        }
        yield _fact(one, name, fields, _ACTIONS[action.outcome], "It ended: {outcome}.")
        before = action


def _fact(
    one: Written[Any], name: str, fields: dict[str, Any], ending: Ending, summary: str
) -> KeptFact:
    return KeptFact(
        id=one.entity.id,
        name=name,
        at=one.at,
        by=AGENT if one.change.by == one.entity.agent else one.change.by,
        fields=fields | {"why": clip(one.change.why)},
        ending=ending,
        summary=summary,
    )
