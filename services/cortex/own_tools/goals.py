"""goal_create, goal_update, goal_split and goal_list: what the agent pursues (SPEC G-2, P-6).

What is pursued is the person's to say: a goal that no order of theirs stands behind, or that
content from outside has a part in, is kept paused until they let it go on. Its words are never
changed afterwards. A loop that such content has a part in touches only goals that are marked as it
is itself, and lets none go on; whoever reads one that is marked is swayed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from vigil.board.kinds.goal import described
from vigil.contracts import BoardChangePayload
from vigil.contracts.arguments import Arguments
from vigil.contracts.board import BoardGoal
from vigil.contracts.board.goal import GoalOrigin
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.errors import InvalidInput
from vigil.goals import lifecycle
from vigil.goals.check import (
    CHECK_INTERVAL_S,
    CHECK_INTERVAL_S_MAX,
    CHECK_INTERVAL_S_MIN,
    CRITERIA_LENGTH_MAX,
    DESCRIPTION_LENGTH_MAX,
    PRIORITY_MAX,
    PRIORITY_MIN,
    STRATEGY_LENGTH_MAX,
    check,
)
from vigil.goals.lifecycle import ReadGoal
from vigil.subjects import SessionKey, token_of

from ..core import loops
from ..core import sway as sways
from ..core.draft import Draft
from ..core.pending.tasks import shortened
from ..core.tools import calls
from ..core.tools.declaration import Answer, OwnCall, Result, tool

PROFILES: Final = ("channel", "worker", "cron", "autonomy", "mind")
SHOWN_LENGTH_MAX: Final = 300
"""Characters of each text in a list."""
LISTED_MIN: Final = 50
"""So many goals a list has room for, if fewer may be active, too."""
ONLY_THE_PERSON: Final = "Only the person lets it be pursued: `vigil goals resume {id}`."
NOT_YOURS: Final = (
    "This exchange took in content from outside: it may change only goals that come from such "
    "content. The person can: `vigil goals`."
)

Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Description = Annotated[str, msgspec.Meta(min_length=1, max_length=DESCRIPTION_LENGTH_MAX)]
Criteria = Annotated[str, msgspec.Meta(max_length=CRITERIA_LENGTH_MAX)]
Strategy = Annotated[str, msgspec.Meta(max_length=STRATEGY_LENGTH_MAX)]
Priority = Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]
Interval = Annotated[int, msgspec.Meta(ge=CHECK_INTERVAL_S_MIN, le=CHECK_INTERVAL_S_MAX)]
At = Annotated[datetime, msgspec.Meta(tz=True)]
Why = Annotated[str, msgspec.Meta(max_length=500)]


class GoalCreate(Arguments, frozen=True, kw_only=True):
    """Set a goal: something that is pursued for days or for good, and looked at again and again.

    With deadline_at it is reached or fails by then; without, it stands until it's put away.
    Priority: 5 is critical. What is done once is a task, not a goal.
    """

    description: Description
    deadline_at: At | None = None
    success_criteria: Criteria = ""
    strategy: Strategy = ""
    priority: Priority = 3
    check_interval_secs: Interval = CHECK_INTERVAL_S
    parent: Id | None = None


class GoalUpdate(Arguments, frozen=True, kw_only=True):
    """Change how a goal is pursued, or where it stands. Set is_checked when you have just looked
    at how it goes. A standing goal is never completed; archived puts it away for good."""

    id: Id
    status: GoalStatus | None = None
    strategy: Strategy | None = None
    priority: Priority | None = None
    check_interval_secs: Interval | None = None
    deadline_at: At | None = None
    is_checked: bool = False
    why: Why = ""


class PartOfGoal(Arguments, frozen=True, kw_only=True):
    """One part of a goal."""

    description: Description
    success_criteria: Criteria = ""


class SplitGoal(Arguments, frozen=True, kw_only=True):
    """Split a goal into parts that are pursued by themselves; the whole goes on beside them."""

    id: Id
    parts: Annotated[
        tuple[PartOfGoal, ...], msgspec.Meta(min_length=1, max_length=lifecycle.PARTS_MAX)
    ]
    why: Why = ""


class GoalList(Arguments, frozen=True, kw_only=True):
    """List the goals, the most important first: all that haven't ended, or those of one status."""

    status: GoalStatus | None = None


# ---------------------------------------------------------------- goal_create


def _may_pursue(call: OwnCall, draft: Draft) -> bool:
    """Whether what this loop sets is pursued without the person's leave."""
    return calls.may_not_change(draft) is None and not call.sway.is_outside


def _origin(call: OwnCall, draft: Draft) -> GoalOrigin:
    is_theirs = draft.loop.is_direct and not call.sway.is_outside
    return "explicit" if is_theirs else "self"


def _no_room(given: Arguments, call: OwnCall, draft: Draft) -> str | None:
    return calls.refusal(draft, call.use.input)


def _new_id(draft: Draft, number: int = 0) -> str:
    # The effects of a session are counted through its life, so no other goal has this id.
    return token_of("goal", draft.key, draft.loop.cause.id, str(draft.state.effects), str(number))


@tool(
    risk="write",
    profiles=PROFILES,
    obstacle=_no_room,
    aims={"deadline_at": "detail", "parent": "which"},
)
def goal_create(given: GoalCreate, call: OwnCall, draft: Draft) -> Answer:
    """Set a goal; whether there is room for one more is found when it's stored."""
    goal = lifecycle.begun(
        _new_id(draft),
        SessionKey.parse(draft.key).scope,
        draft.moment.now,
        lifecycle.said_of(given),
        status="active" if _may_pursue(call, draft) else "paused",
        source_channel=draft.state.channel if draft.loop.is_direct else "",
        origin=_origin(call, draft),
        session_key=draft.key,
        is_tainted=call.sway.is_outside,
    )
    return _asked(draft, call, goal)


def _asked(
    draft: Draft,
    call: OwnCall,
    goal: BoardGoal,
    *,
    expect: int = 0,
    why: str = "",
    parts: tuple[BoardGoal, ...] = (),
) -> Answer:
    """Have it kept, if it may be, and wait for what the board says."""
    try:
        for one in parts or (goal,):
            check(one)
    except InvalidInput as error:
        return str(error), True
    payload = BoardChangePayload(entity=goal, expect=expect, why=why, parts=parts)
    return calls.ask_board(draft, call.use, payload)


# ---------------------------------------------------------------- goal_update


def read_goal(draft: Draft, id_: str) -> ReadGoal | None:
    """Return a goal as it was read for this turn; None: there is none."""
    return next((one for one in draft.moment.goals if one.goal.id == id_), None)


def _obstacle(given: GoalUpdate | SplitGoal, call: OwnCall, draft: Draft) -> str | None:
    found = read_goal(draft, given.id)
    if found is None:
        return f"There is no goal {given.id}."
    if call.sway.is_outside and not sways.of(found.goal).is_outside:
        return NOT_YOURS
    if (reason := calls.may_not_change(draft)) is not None:
        return f"Not changed: {reason}."
    pursues = isinstance(given, SplitGoal) or given.status == "active"
    is_marked = sways.of(found.goal).is_outside
    if pursues and (is_marked or not _may_pursue(call, draft)):
        return ONLY_THE_PERSON.format(id=given.id[:8])
    return calls.refusal(draft, call.use.input)


@tool(
    risk="write",
    profiles=PROFILES,
    obstacle=_obstacle,
    reads=("goals",),
    aims={"id": "which", "status": "which", "deadline_at": "detail"},
)
def goal_update(given: GoalUpdate, call: OwnCall, draft: Draft) -> Answer:
    """Change a goal as it was read a moment ago; if somebody was faster, the model decides anew."""
    found = read_goal(draft, given.id)
    if found is None:
        raise AssertionError(f"{given.id} is not there")
    try:
        goal = lifecycle.changed(
            found.goal,
            lifecycle.said_of(given),
            given.status,
            draft.moment.now,
            is_checked=given.is_checked,
        )
    except InvalidInput as error:
        return str(error), True
    if goal == found.goal:
        return "It is so already.", False
    return _asked(draft, call, goal, expect=found.revision, why=given.why)


# ---------------------------------------------------------------- goal_split


@tool(
    risk="write",
    profiles=PROFILES,
    obstacle=_obstacle,
    reads=("goals",),
    aims={"id": "which"},
)
def goal_split(given: SplitGoal, call: OwnCall, draft: Draft) -> Answer:
    """Split a goal: all its parts find room, or none is made."""
    found = read_goal(draft, given.id)
    if found is None:
        raise AssertionError(f"{given.id} is not there")
    now, key = draft.moment.now, draft.key
    whose = SessionKey.parse(key).scope
    try:
        parts = tuple(
            lifecycle.part_of(found.goal, lifecycle.begun(id_, whose, now, said, session_key=key))
            for number, one in enumerate(given.parts, start=1)
            for id_, said in [(_new_id(draft, number), lifecycle.said_of(one))]
        )
    except InvalidInput as error:
        return str(error), True
    return _asked(draft, call, found.goal, expect=found.revision, why=given.why, parts=parts)


# ---------------------------------------------------------------- goal_list


@tool(risk="read", profiles=PROFILES, reads=("goals",))
def goal_list(given: GoalList, call: OwnCall, draft: Draft) -> Result:
    """Show the goals; what comes from outside among them has its part in the loop from then on."""
    wanted = lifecycle.HELD if given.status is None else (given.status,)
    found = [one.goal for one in draft.moment.goals if one.goal.status in wanted]
    shown = found[: max(LISTED_MIN, draft.policy.goals_max)]
    loops.take_in(draft, sways.of(*shown))
    lines = [_line(goal, draft.moment.now) for goal in shown]
    if len(found) > len(shown):
        lines.append(f"{len(found) - len(shown)} more.")
    return calls.bounded("\n".join(lines) or "None.", draft.policy.result_length_max), False


def _line(goal: BoardGoal, now: datetime) -> str:
    is_due = (at := lifecycle.next_check_at(goal, now)) is not None and at <= now
    checked = ", due to be looked at" if is_due else ""
    lines = described(goal, checked, "Facts to tell by goal_report", datetime.isoformat, _short)
    return f"{goal.id} " + "\n  ".join(lines)


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), SHOWN_LENGTH_MAX)
