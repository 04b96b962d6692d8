"""/api/goals: what an agent pursues for a person (SPEC G-2, LOOPS L-15)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Query, Response

from vigil.board.bounds import goals_of
from vigil.board.goals import split
from vigil.board.kept import GOALS, Revision
from vigil.board.outside import RevisionView
from vigil.contracts import Instant
from vigil.contracts.board import BoardGoal
from vigil.contracts.board.goal import GoalKind, GoalOrigin
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.errors import InvalidInput
from vigil.facts.shape import words_of
from vigil.facts.shown import wanted_of_goal
from vigil.facts.wanted import read_wanted, rules_of_wanted, shapes_of_wanted, words_of_wanted
from vigil.goals import lifecycle
from vigil.goals.check import CHECK_INTERVAL_S, check
from vigil.subjects import PartText

from .. import preconditions
from ..callers import Caller, Shared, User, body_of, id_of
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..insight.facts import FactsBody
from ..preconditions import Expected
from ..state.edge import Edge
from .desk import KeptDesk, change_by, owner_for

DESK: Final = KeptDesk(GOALS, goals_of)
Id = Annotated[str, Depends(id_of("a goal"))]
_RENAMED: Final = {
    "agent": "agent_id",
    "goal_kind": "kind",
    "check_interval_s": "check_interval_secs",
}
"""Field of the record -> what requests and answers call it."""
_PLAIN: Final = tuple(n for n in BoardGoal.__struct_fields__ if n not in ("facts", "news"))


class GoalBody(
    RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId", "user_id": "userId"}
):
    """A new goal."""

    description: str
    """What is to be reached, in at most 2,000 characters."""
    priority: int = 3
    """1 to 5; 5 is critical."""
    check_interval_secs: int = CHECK_INTERVAL_S
    """How often it's looked at: a minute to a year."""
    success_criteria: str = ""
    strategy: str = ""
    """How to pursue it; the agent changes that."""
    deadline_at: Instant | None = None
    """By when it is to be reached; absent: it stands until it's put away."""
    source_channel: str = ""
    parent: str = ""
    """The goal that it's a part of."""
    facts: FactsBody = msgspec.field(default_factory=dict)
    """What is told of it in a closed form: name -> shape, and `news RULE` behind it; at most 8."""
    user_id: PartText | None = None
    """Yourself."""
    agent_id: PartText = "vigil"
    why: str = ""


class GoalChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is."""

    status: GoalStatus | None = None
    description: str | None = None
    priority: int | None = None
    check_interval_secs: int | None = None
    success_criteria: str | None = None
    strategy: str | None = None
    deadline_at: Instant | None = None
    """From then on it's a timed one."""
    parent: str | None = None
    """Empty: of none."""
    facts: FactsBody | None = None
    """All of them; empty: none."""
    why: str = ""


class GoalPart(RequestBody, frozen=True, kw_only=True):
    """A part of a goal; all else it has of the whole."""

    description: str
    success_criteria: str = ""


class GoalSplit(RequestBody, frozen=True, kw_only=True):
    """What a goal is split into."""

    parts: tuple[GoalPart, ...]
    """At most 10."""
    why: str = ""


class GoalView(Answer, frozen=True, kw_only=True):
    """A goal."""

    id: str
    owner: str
    agent_id: str
    description: str
    kind: GoalKind
    deadline_at: Instant | None
    status: GoalStatus
    priority: int
    success_criteria: str
    strategy: str
    check_interval_secs: int
    last_checked_at: Instant | None
    next_check_at: Instant | None
    """None: it isn't pursued now."""
    source_channel: str
    origin: GoalOrigin
    parent: str
    session_key: str
    is_tainted: bool
    created_at: Instant
    moved_at: Instant
    facts: dict[str, str]
    """What is told of it in a closed form, as it was named; `/api/facts` has what is known."""
    revision: int
    moves: tuple[GoalStatus, ...]
    """Where it may go."""


class GoalRevision(RevisionView, frozen=True, kw_only=True):
    """One state that a goal was in, and who made it so."""

    status: GoalStatus


class GoalDetail(GoalView, frozen=True, kw_only=True):
    """A goal, and how it came to be as it is."""

    history: tuple[GoalRevision, ...]
    """The oldest first; of more than 64 the newest."""


class GoalListing(Answer, frozen=True, kw_only=True):
    """Goals, the more important first, then the older."""

    goals: tuple[GoalView, ...]


def _facts(found: Revision[BoardGoal]) -> dict[str, Any]:
    goal = found.entity
    same = {_RENAMED.get(name, name): getattr(goal, name) for name in _PLAIN}
    return {
        **same,
        "facts": {
            name: words_of_wanted(words_of(shape), "", rule)
            for name, (shape, _, rule) in wanted_of_goal(goal).items()
        },
        "next_check_at": lifecycle.next_check_at(goal),
        "revision": found.number,
        "moves": lifecycle.moves_of(goal),
    }


# ---------------------------------------------------------------- endpoints


async def list_goals(
    edge: Shared,
    caller: Caller,
    status: Annotated[
        GoalStatus | None, Query(description="Only those; absent: all that haven't ended")
    ] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> Response:
    """List goals, the more important first, then the older."""
    wanted = lifecycle.HELD if status is None else (status,)
    found = [one for one in await DESK.all(edge, caller, user) if one.entity.status in wanted]
    found.sort(key=lambda one: lifecycle.rank(one.entity))
    return Json(GoalListing(goals=tuple(GoalView(**_facts(one)) for one in found[:limit])))


async def get_goal(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show a goal with its history; its ETag is its revision."""
    return await _shown(edge, await DESK.find(edge, caller.reach, id_))


async def make_goal(
    edge: Shared, caller: Caller, wanted: Annotated[GoalBody, Depends(body_of(GoalBody))]
) -> Response:
    """Make a goal; 422 beyond `goals.max` that are active."""
    owner = owner_for(edge, caller, wanted.agent_id, wanted.user_id)
    goal = check(_goal(wanted, owner, _new_id(edge), edge.clock.now()))
    return await _shown(edge, await DESK.create(edge, caller, goal, wanted.why), 201)


async def change_goal(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[GoalChange, Depends(body_of(GoalChange))],
    expected: Expected,
) -> Response:
    """Move a goal, or change what it says; 412 if it was changed since it was read."""
    found = await DESK.changeable(edge, caller, id_, expected)
    fields = _fields(wanted)
    is_end = wanted.status not in (None, "active") and not fields
    DESK.check_leave(caller, found.entity, is_end=is_end, field="status")
    goal = lifecycle.changed(found.entity, fields, wanted.status, edge.clock.now())
    return await _shown(edge, await DESK.store(edge, caller, found, check(goal), wanted.why))


async def split_goal(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[GoalSplit, Depends(body_of(GoalSplit))],
    expected: Expected,
) -> Response:
    """Split a goal into parts, which are goals of their own; it goes on beside them."""
    found = await DESK.changeable(edge, caller, id_, expected)
    DESK.check_leave(caller, found.entity, is_end=False, field="parts")
    if found.entity.status not in lifecycle.HELD:
        raise Problem(409, f"it is {found.entity.status}: there is nothing to split")
    if not 1 <= len(wanted.parts) <= lifecycle.PARTS_MAX:
        raise InvalidInput("parts", f"must be 1 to {lifecycle.PARTS_MAX}")
    now, change = edge.clock.now(), change_by(caller, wanted.why)
    parts = [_part(one, found.entity, _new_id(edge), now) for one in wanted.parts]
    kind = goals_of(edge.context.settings.config)
    made = await split(edge.bus, kind, found.entity, parts, change, now)
    return Json(GoalListing(goals=tuple(GoalView(**_facts(one)) for one in made)), 201)


async def archive_goal(edge: Shared, caller: Caller, id_: Id, expected: Expected) -> Response:
    """Put a goal away, whatever became of it; its history stays."""
    found = await DESK.changeable(edge, caller, id_, expected)
    goal = lifecycle.moved(found.entity, "archived", edge.clock.now())
    return await _shown(edge, await DESK.store(edge, caller, found, goal, "archived"))


# ---------------------------------------------------------------- inside


def _new_id(edge: Edge) -> str:
    return edge.context.new_id().replace("-", "")


def _goal(wanted: GoalBody, owner: str, id_: str, now: datetime) -> BoardGoal:
    return BoardGoal(
        id=id_,
        owner=owner,
        agent=wanted.agent_id,
        description=wanted.description,
        goal_kind="standing" if wanted.deadline_at is None else "timed",
        deadline_at=wanted.deadline_at,
        priority=wanted.priority,
        success_criteria=wanted.success_criteria,
        strategy=wanted.strategy,
        check_interval_s=wanted.check_interval_secs,
        source_channel=wanted.source_channel,
        parent=wanted.parent,
        **_closed(wanted.facts),
        created_at=now,
        moved_at=now,
    )


def _part(wanted: GoalPart, whole: BoardGoal, id_: str, now: datetime) -> BoardGoal:
    return BoardGoal(
        id=id_,
        owner=whole.owner,
        agent=whole.agent,
        description=wanted.description,
        success_criteria=wanted.success_criteria,
        check_interval_s=whole.check_interval_s,
        created_at=now,
        moved_at=now,
    )


def _fields(wanted: GoalChange) -> dict[str, Any]:
    given = {
        name: value
        for name, value in msgspec.structs.asdict(wanted).items()
        if value is not None and name not in ("status", "why", "facts")
    }
    given |= {} if wanted.facts is None else _closed(wanted.facts)
    names = {new: old for old, new in _RENAMED.items()}
    return {names.get(name, name): value for name, value in given.items()}


def _closed(facts: Mapping[str, str]) -> dict[str, Any]:
    """Return facts as a goal names them. Raises: InvalidInput."""
    wanted = read_wanted(facts)
    for name, one in wanted.items():
        if one.where:
            raise InvalidInput(f"facts.{name[:40]}", "is told by whoever looks: leave out `at`")
    return {"facts": shapes_of_wanted(wanted), "news": rules_of_wanted(wanted)}


async def _shown(edge: Edge, found: Revision[BoardGoal], status: int = 200) -> Response:
    history = tuple(
        GoalRevision(status=goal.status, **msgspec.structs.asdict(one))
        for goal, one in await DESK.history(edge, found)
    )
    answer = GoalDetail(**_facts(found), history=history)
    return preconditions.tagged(Json(answer, status), found.number)
