"""The lifecycle of a goal: which moves there are, and when one is looked at (SPEC G-2).

Who may make a move is for the caller to say; whether there is such a move is said here alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..contracts.board import BoardGoal
from ..contracts.board.vocabulary import GoalStatus
from ..errors import InvalidInput

MOVES: Final[dict[GoalStatus, tuple[GoalStatus, ...]]] = {
    "active": ("paused", "completed", "failed", "archived"),
    "paused": ("active", "completed", "failed", "archived"),
    "completed": ("archived",),
    "failed": ("active", "archived"),
    "archived": (),
}
"""From each status to those that it may go to."""
OF_TIMED: Final[tuple[GoalStatus, ...]] = ("completed", "failed")
"""Where no standing goal gets."""
HELD: Final[tuple[GoalStatus, ...]] = ("active", "paused")
"""What hasn't ended."""
PARTS_MAX: Final = 10
"""That a goal is split into at once."""


def moves_of(goal: BoardGoal) -> tuple[GoalStatus, ...]:
    """Return where a goal may go."""
    moves = MOVES[goal.status]
    if goal.goal_kind == "timed":
        return moves
    return tuple(to for to in moves if to not in OF_TIMED)


def moved(goal: BoardGoal, to: GoalStatus, now: datetime) -> BoardGoal:
    """Return the goal after a move.

    Raises:
        InvalidInput: there is no such move, naming both and what is allowed; or its deadline is
            over.
    """
    allowed = moves_of(goal)
    if to not in allowed:
        what = f"a {goal.goal_kind} goal can't go from {goal.status} to {to}"
        where = f"it may go to {' or '.join(allowed)}" if allowed else "it stays so"
        raise InvalidInput("status", f"{what}; {where}")
    if to == "active" and goal.deadline_at is not None and goal.deadline_at <= now:
        raise InvalidInput("deadline_at", f"{goal.deadline_at.isoformat()} is over: give another")
    return replace(goal, status=to, moved_at=now)


def changed(goal: BoardGoal, fields: dict[str, Any], to: GoalStatus | None, now: datetime) -> Any:
    """Return the goal with other fields and, if that is another, in another status.

    A deadline makes it timed, so it may be reached from then on.

    Raises:
        InvalidInput: there is no such move, or it has ended and says what it said.
    """
    if fields and goal.status not in HELD and to != "active":
        raise InvalidInput("status", f"is {goal.status}: nothing of it changes any more")
    if fields.get("deadline_at") is not None:
        fields = {"goal_kind": "timed", **fields}
        if fields["deadline_at"] <= now:
            raise InvalidInput("deadline_at", f"{fields['deadline_at'].isoformat()} is over")
    goal = replace(goal, **fields)
    return goal if to in (None, goal.status) else moved(goal, to, now)


def part_of(goal: BoardGoal, part: BoardGoal) -> BoardGoal:
    """Return a part that a goal is split into: what it doesn't say of itself, the whole says.

    Raises:
        InvalidInput: the goal has ended.
    """
    if goal.status not in HELD:
        raise InvalidInput("status", f"is {goal.status}: there is nothing to split")
    return replace(
        part,
        owner=goal.owner,
        agent=goal.agent,
        parent=goal.id,
        goal_kind=goal.goal_kind,
        deadline_at=goal.deadline_at,
        priority=goal.priority,
        check_interval_s=goal.check_interval_s,
        source_channel=goal.source_channel,
        origin=goal.origin,
        is_tainted=goal.is_tainted or part.is_tainted,
    )


def is_active(goal: BoardGoal) -> bool:
    """Whether it counts towards the bound of its owner."""
    return goal.status == "active"


def is_over(goal: BoardGoal, now: datetime) -> bool:
    """Whether its deadline passed before it was reached; a pause doesn't hold that up."""
    at = goal.deadline_at
    return at is not None and goal.status in HELD and at <= now


class ReadGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal as a revision has it."""

    goal: BoardGoal
    revision: int


# ---------------------------------------------------------------- being looked at


def next_check_at(goal: BoardGoal) -> datetime | None:
    """Return from when on it is due to be looked at; None: it isn't pursued now."""
    if goal.status != "active":
        return None
    if goal.last_checked_at is None:
        return goal.created_at
    return goal.last_checked_at + timedelta(seconds=goal.check_interval_s)


def due(goals: Iterable[BoardGoal], now: datetime) -> list[BoardGoal]:
    """Return what is to be looked at: the more important first, then the older."""
    found = [one for one in goals if (at := next_check_at(one)) is not None and at <= now]
    return sorted(found, key=rank)


def rank(goal: BoardGoal) -> tuple[int, datetime, str]:
    """Return what goals are put in order by."""
    return -goal.priority, goal.created_at, goal.id
