"""The situation report: what a look is shown, made anew from the board each time. Pure.

It stays short, whatever is behind it: as many goals as may be active, of a line each, the newest
actions, preferences that hold. Of actions and goals that content from outside had a part in it has
no words, unless the look is at just that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from vigil.board.kinds.goal import described
from vigil.contracts import ExternalBlock, Row, TaskBlock
from vigil.contracts.board import BoardAction, BoardGoal
from vigil.goals import lifecycle
from vigil.memory.operation import tools as memory_tools
from vigil.preferences.shown import shown

from .. import sway as sways
from ..draft import Draft
from ..draft.profile import OwnersBoard
from ..pending.tasks import shortened
from ..tools.declaration import declared

GOALS_MIN: Final = 50
"""So many goals there is room for, if fewer may be active, too: others are paused."""
ENDED_MAX: Final = 5
"""Goals that ended, the newest."""
ACTIONS_MAX: Final = 20
RESPOND: Final = "respond"
"""The type of an action that told the person something."""
LINE_LENGTH_MAX: Final = 300
"""Characters of a text in a line."""
INPUT_LENGTH_MAX: Final = 8_000
"""Characters of one thing that came in."""


def values(
    board: OwnersBoard, due: Sequence[str], rows: Iterable[Row], draft: Draft
) -> dict[str, Any]:
    """Return what the template of a report is filled with.

    Args:
        due: ids of the goals that the look is at.
        rows: what it took.
    """
    goals = [one for one in board.goals if not sways.of(one).is_outside or one.id in due]
    now, policy = draft.moment.now, draft.policy
    held = [one for one in goals if one.status in lifecycle.HELD]
    held.sort(key=lambda one: one.id not in due)  # none that the look is at is among the hidden
    held = held[: max(GOALS_MIN, policy.goals_max)]
    return {
        "due": [_goal(one, now) for one in held if one.id in due],
        "others": [_goal(one, now) for one in held if one.id not in due],
        "ended": [_goal(one, now) for one in goals if one.status not in lifecycle.HELD][:ENDED_MAX],
        "hidden": sum(one.status in lifecycle.HELD for one in board.goals) - len(held),
        "facts": board.facts,
        "likes": shown(board.preferences, now, policy.preference_period, asks=True),
        "actions": [_action(one) for one in board.actions[-ACTIONS_MAX:]],
        "inputs": [_input(block) for row in rows for block in row.blocks],
        "is_swayed": draft.sway.is_outside,
    }


def _goal(goal: BoardGoal, now: datetime) -> str:
    """
    >>> from datetime import UTC
    >>> from vigil.subjects import Scope
    >>> at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    >>> _goal(lifecycle.begun("ab", Scope("vigil", "ann"), at, {}, description="Clean inbox"), at)
    'ab: active, standing, priority 3, never looked at: Clean inbox'
    """
    seen = goal.last_checked_at
    checked = ", never looked at" if seen is None else f", looked at {_at(seen)}"
    return f"{goal.id}: {' '.join(described(goal, checked, 'Facts', _at, _line))}"


def _at(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _action(action: BoardAction) -> str:
    type_, what = action.type, _line(action.description)
    if sways.of(action).is_outside:  # nothing that a model wrote, nor a server's name for a tool
        type_, what = type_ if _is_own(type_) else "a tool", "from outside"
    text = f"{_at(action.created_at)}, {type_}, {action.outcome}: {what}"
    if action.feedback is not None:
        liked = "good" if action.feedback.is_good else "not good"
        said = f": {_line(action.feedback.text)}" if action.feedback.text else ""
        text += f" The person found it {liked}{said}"
    return text


def _is_own(type_: str) -> bool:
    return type_ == RESPOND or type_ in declared() or type_ in memory_tools()


def _input(block: Any) -> dict[str, Any]:
    """Return one thing that came in: what it is, and its content, which goes behind bars."""
    match block:
        case ExternalBlock(event=event):
            trust = "trusted" if event.is_trusted else "not trusted"
            head = f"An event from {event.source} ({trust}), {event.kind or 'of no type'}"
            return {"head": head, "content": event.content[:INPUT_LENGTH_MAX]}
        case TaskBlock():
            failed = ", which failed" if block.is_error else ""
            title = f" ({_line(block.title)})" if block.title else ""
            head = f"{block.tool}{title}{failed}"
            return {"head": head, "content": block.content[:INPUT_LENGTH_MAX]}
        case _:
            return {"head": "Something that can't be shown", "content": ""}


def _line(text: str) -> str:
    return shortened(" ".join(text.split()), LINE_LENGTH_MAX)
