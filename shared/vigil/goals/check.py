"""What a goal may hold: each refusal names the field and the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..contracts.board import BoardGoal
from ..errors import InvalidInput
from ..facts.news import check_rules
from ..facts.shape import check_shapes
from ..fields.schema import NO_NUL, SAID, length, within
from ..subjects import check_part
from ..tasks.check import check_text
from ..zones.wall import END

DESCRIPTION_LENGTH_MAX: Final = 2_000
CRITERIA_LENGTH_MAX: Final = 2_000
STRATEGY_LENGTH_MAX: Final = 4_000
CHANNEL_LENGTH_MAX: Final = 64
PRIORITY_MIN: Final = 1
PRIORITY_MAX: Final = 5
CHECK_INTERVAL_S: Final = 86_400
"""Where nothing else is said."""
CHECK_INTERVAL_S_MIN: Final = 60
OWN_INTERVAL_S_MIN: Final = 3600
"""The shortest that an agent sets by itself; so far ahead is each deadline of its, too."""
CHECK_INTERVAL_S_MAX: Final = 366 * 86_400
FORM: Final = {
    "description": length(DESCRIPTION_LENGTH_MAX, SAID),
    "priority": within(PRIORITY_MIN, PRIORITY_MAX),
    "check_interval_secs": within(CHECK_INTERVAL_S_MIN, CHECK_INTERVAL_S_MAX),
    "success_criteria": length(CRITERIA_LENGTH_MAX, NO_NUL),
    "strategy": length(STRATEGY_LENGTH_MAX, NO_NUL),
}
"""What requests are told of these, as schemas have it."""
PAUSED_MAX: Final = 200
"""Of an owner's."""
OUTSIDE_MAX: Final = 100
"""Of them, those that content from outside had a part in."""
DEPTH_MAX: Final = 5
"""Goals that are parts of each other."""


def check(goal: BoardGoal) -> BoardGoal:
    """Return a goal that may be kept, whatever others there are. Raises: InvalidInput."""
    check_part("owner", goal.owner)
    check_part("agent", goal.agent)
    description = check_text("description", goal.description, DESCRIPTION_LENGTH_MAX)
    if not description.strip():
        raise InvalidInput("description", "must say what is to be reached")
    check_text("success_criteria", goal.success_criteria, CRITERIA_LENGTH_MAX)
    check_text("strategy", goal.strategy, STRATEGY_LENGTH_MAX)
    check_text("source_channel", goal.source_channel, CHANNEL_LENGTH_MAX)
    _check_range("priority", goal.priority, PRIORITY_MIN, PRIORITY_MAX)
    _check_range(
        "check_interval_secs", goal.check_interval_s, CHECK_INTERVAL_S_MIN, CHECK_INTERVAL_S_MAX
    )
    _check_deadline(goal)
    check_shapes(goal.facts)
    check_rules(goal.news, goal.facts)
    return goal


def _check_deadline(goal: BoardGoal) -> None:
    at = goal.deadline_at
    if at is None and goal.goal_kind == "timed":
        raise InvalidInput("deadline_at", "a timed goal needs one")
    if at is not None and goal.goal_kind == "standing":
        raise InvalidInput("deadline_at", "a standing goal has none")
    if at is not None and not goal.created_at < at < END:
        reason = f"{at.isoformat()} must be after {goal.created_at.isoformat(timespec='seconds')}"
        raise InvalidInput("deadline_at", f"{reason} and before {END.year}")


def _check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(field, f"must be {least} to {most}, is {value}")


def fitted(goal: BoardGoal, others: Iterable[BoardGoal]) -> BoardGoal:
    """Return a goal that fits among the owner's others, by its parent and how many are paused.

    Args:
        others: with itself, as it was. A part stays one when the whole ends, and goes on: only what
            becomes a part needs a whole that is pursued. So nothing that is a part is refused for
            being one, whatever became of those above.

    Raises:
        InvalidInput: it would be a part of itself, or of what isn't there, or has ended, or too
            deep.
    """
    there = {one.id: one for one in others if one.agent == goal.agent}
    before = there.pop(goal.id, None)
    if before is None or before.parent != goal.parent:
        _check_parents(goal, there)
    paused = [one for one in there.values() if one.status == "paused"]
    marked = sum(one.is_tainted for one in paused)
    if goal.status == "paused" and len(paused) >= PAUSED_MAX:
        raise InvalidInput("status", f"{len(paused)} goals are paused already; archive one")
    if goal.status == "paused" and goal.is_tainted and marked >= OUTSIDE_MAX:
        reason = f"{marked} that content from outside had a part in are paused already; archive one"
        raise InvalidInput("status", reason)
    return goal


def _check_parents(goal: BoardGoal, there: dict[str, BoardGoal]) -> None:
    above, wholes = goal.parent, 0
    while above and wholes < DEPTH_MAX:
        if above == goal.id:
            raise InvalidInput("parent", "it would be a part of itself")
        found = there.get(above)
        if found is None:
            raise InvalidInput("parent", f"there is no goal {above[:40]!r}")
        if not wholes and found.status not in ("active", "paused"):
            raise InvalidInput("parent", f"is {found.status}")
        above, wholes = found.parent, wholes + 1
    if wholes + 1 + _parts_below(goal.id, there) > DEPTH_MAX:
        raise InvalidInput("parent", f"would be more than {DEPTH_MAX} goals deep")


def _parts_below(id_: str, there: dict[str, BoardGoal], depth: int = 1) -> int:
    """Return how deep its parts go: 0, if it has none."""
    parts = [one.id for one in there.values() if one.parent == id_]
    if not parts or depth > DEPTH_MAX:
        return 0
    return 1 + max(_parts_below(part, there, depth + 1) for part in parts)
