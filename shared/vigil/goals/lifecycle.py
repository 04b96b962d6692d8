"""The lifecycle of a goal: how it begins, which moves there are, when it is looked at (SPEC G-2).

Who may make a move is for the caller to say; whether there is such a move is said here alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..contracts.base import SET_BACK_MIN
from ..contracts.board import BoardGoal
from ..contracts.board.vocabulary import GoalStatus
from ..errors import InvalidInput
from ..subjects import Scope
from .check import CHECK_INTERVAL_S, OWN_INTERVAL_S_MIN

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


def said_of(wanted: msgspec.Struct) -> dict[str, Any]:
    """Return what a request or a call says of a goal, as fields of the record; which goal it is
    about, and where that is to go, are none."""
    fields = {name: one for name, one in msgspec.structs.asdict(wanted).items() if one is not None}
    if "check_interval_secs" in fields:
        fields["check_interval_s"] = fields["check_interval_secs"]
    own = set(BoardGoal.__struct_fields__) - {"id", "status"}
    return {name: one for name, one in fields.items() if name in own}


def hasty(said: dict[str, Any], before: BoardGoal | None, now: datetime) -> str:
    """Return why an agent may not say so by itself, which would have it asked each minute; empty:
    it may. A person may: what they pay for is theirs to say.

    Args:
        said: as `said_of` returns it.
        before: the goal; None: it is made.
    """
    interval_s, deadline_at = said.get("check_interval_s"), said.get("deadline_at")
    least = (
        OWN_INTERVAL_S_MIN if before is None else min(OWN_INTERVAL_S_MIN, before.check_interval_s)
    )
    if interval_s is not None and interval_s < least:
        return f"a look sets no interval of less than {least} s: {interval_s}"
    if deadline_at is not None and deadline_at < now + timedelta(seconds=OWN_INTERVAL_S_MIN):
        return f"a look sets no deadline within the next hour: {deadline_at.isoformat()}"
    return ""


def begun(id_: str, whose: Scope, now: datetime, said: dict[str, Any], **more: Any) -> BoardGoal:
    """Return a new goal: a timed one, if a deadline is said.

    Args:
        said: fields of the record, as `said_of` returns them.
        more: others.
    """
    fields = {"check_interval_s": CHECK_INTERVAL_S, **said, **more}
    return BoardGoal(
        id=id_,
        owner=whose.owner,
        agent=whose.agent,
        goal_kind="timed" if "deadline_at" in said else "standing",
        created_at=now,
        moved_at=now,
        **fields,
    )


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


def changed(
    goal: BoardGoal,
    fields: dict[str, Any],
    to: GoalStatus | None,
    now: datetime,
    *,
    is_checked: bool = False,
) -> BoardGoal:
    """Return the goal with other fields and, if that is another, in another status.

    A deadline makes it timed, so it may be reached from then on.

    Args:
        is_checked: it was looked at just now.

    Raises:
        InvalidInput: there is no such move, or it has ended and says what it said.
    """
    if is_checked:
        fields = {"last_checked_at": now, **fields}
    if fields and goal.status not in HELD and to != "active":
        raise InvalidInput("status", f"is {goal.status}: nothing of it changes any more")
    if fields.get("deadline_at") is not None:
        fields = {"goal_kind": "timed", **fields}
        if fields["deadline_at"] <= now:
            raise InvalidInput("deadline_at", f"{fields['deadline_at'].isoformat()} is over")
    goal = replace(goal, **fields)
    return goal if to in (None, goal.status) else moved(goal, to, now)


def joined(known: BoardGoal, said: BoardGoal, now: datetime) -> BoardGoal:
    """Return the goal as it is known with what was said of it as it was before: that it is put
    away, or else when it was looked at."""
    if said.status == "archived":
        can_be = "archived" in moves_of(known)
        return moved(known, "archived", now) if can_be else known
    looked_at, before = said.last_checked_at, known.last_checked_at
    if looked_at is None or known.status not in HELD:
        return known
    is_later = before is None or looked_at > before
    return replace(known, last_checked_at=looked_at) if is_later else known


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


def over_at(goal: BoardGoal) -> datetime | None:
    """Return when it fails, unless it is reached before; a pause doesn't hold that up."""
    return goal.deadline_at if goal.status in HELD else None


def is_over(goal: BoardGoal, now: datetime) -> bool:
    """Whether its deadline passed before it was reached."""
    at = over_at(goal)
    return at is not None and at <= now


def is_missed(goal: BoardGoal, since: datetime | None) -> bool:
    """Whether it wasn't reached by its deadline, and failed since then; None: ever."""
    is_late = goal.deadline_at is not None and goal.moved_at >= goal.deadline_at
    return goal.status == "failed" and is_late and (since is None or goal.moved_at > since)


class ReadGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal as a revision has it."""

    goal: BoardGoal
    revision: int


# ---------------------------------------------------------------- being looked at


def next_check_at(goal: BoardGoal, now: datetime) -> datetime | None:
    """Return from when on it is due to be looked at; None: it isn't pursued now.

    One that was looked at by a clock that was ahead, and is set back, is due.
    """
    if goal.status != "active":
        return None
    if goal.last_checked_at is None:
        return goal.created_at
    if goal.last_checked_at - now > SET_BACK_MIN:
        return now
    return goal.last_checked_at + timedelta(seconds=goal.check_interval_s)


def due(goals: Iterable[BoardGoal], now: datetime) -> list[BoardGoal]:
    """Return what is to be looked at: the more important first, then the older."""
    found = [one for one in goals if (at := next_check_at(one, now)) is not None and at <= now]
    return sorted(found, key=rank)


def rank(goal: BoardGoal) -> tuple[int, datetime, str]:
    """Return what goals are put in order by."""
    return -goal.priority, goal.created_at, goal.id
