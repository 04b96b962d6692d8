"""/api/grants: what a person allows an agent beforehand (LOOPS L-8).

Only the person themselves gives leave, with their own token, or a member for their team; an admin
may look, and end. Nothing
that a model says comes here. The board is the truth of grants, and changes by compare-and-set.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

import structlog
from fastapi import Depends, Query, Response
from msgspec.structs import replace

from vigil.board import goals
from vigil.board.grants import standing, standing_of
from vigil.board.kept import GRANTS, ROWS, USES, KeptBoard, Revision
from vigil.board.mirror import Board
from vigil.contracts import Approval, Change, Grant, Instant
from vigil.contracts.board.grant import AnyConstraint, GrantMaker
from vigil.errors import WrongLastSequence
from vigil.grants.check import check
from vigil.grants.rule import Standing, ending
from vigil.subjects import PartText, Scope
from vigil.teams import holding

from .. import preconditions
from ..access import check_reach, listed
from ..callers import Caller, Shared, User, body_of, id_of
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

UNUSED_DAYS: Final = 30
"""After so long without a use a grant is proposed for removal."""
GrantState = Literal["standing", "ended"]
Id = Annotated[str, Depends(id_of("a grant"))]


class GrantBody(RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId"}):
    """What is allowed. Everything that is left out narrows it, but for limits."""

    tool: str
    """`shell`, `server__tool`, or `server__*`."""
    constraints: tuple[AnyConstraint, ...] = ()
    agent_id: PartText = "vigil"
    name: str | None = None
    """Absent: the first free one of `g1`, `g2`, …"""
    session_key: str = ""
    """The one conversation that it holds in; empty: all of the agent's."""
    row: str = ""
    """The one row of the timetable whose runs it holds in, by its id; empty: it's for no row."""
    goal: str = ""
    """The one goal that it holds for, by its id; empty: it's for no goal."""
    expires_at: Instant | None = None
    uses_max: int = 0
    """0: no limit."""
    holds_for_outside: bool = False
    """Also once content from outside had a part in the decision."""
    approval_id: str | None = None
    """The request that it was made of."""
    why: str = ""


class GrantView(Answer, frozen=True, kw_only=True):
    """A standing grant, and how it was used."""

    id: str
    name: str
    owner: str
    agent_id: str
    tool: str
    constraints: tuple[AnyConstraint, ...]
    session_key: str
    row: str
    goal: str
    expires_at: Instant | None
    uses_max: int
    holds_for_outside: bool
    made_by: GrantMaker
    made_at: Instant
    cause: str
    why: str
    revoked_at: Instant | None
    revision: int
    uses: int
    last_used_at: Instant | None
    state: GrantState
    ended: str
    """Why it doesn't stand any more; empty: it does."""
    is_unused: bool
    """It stands, and wasn't used for 30 days."""


class GrantList(Answer, frozen=True, kw_only=True):
    """Standing grants, the newest first."""

    grants: tuple[GrantView, ...]


def view(one: Standing, now: datetime) -> GrantView:
    """Translate a grant for a client."""
    grant, why_ended = one.grant, ending(one, now)
    same: dict[str, Any] = {
        name: getattr(grant, name) for name in Grant.__struct_fields__ if name != "agent"
    }
    since = max(grant.made_at, one.last_used_at or grant.made_at)
    return GrantView(
        **same,
        agent_id=grant.agent,
        revision=one.revision,
        uses=one.uses,
        last_used_at=one.last_used_at,
        state="standing" if why_ended is None else "ended",
        ended=why_ended or "",
        is_unused=why_ended is None and now - since >= timedelta(days=UNUSED_DAYS),
    )


# ---------------------------------------------------------------- endpoints


async def list_grants(
    edge: Shared,
    caller: Caller,
    state: Annotated[
        Literal[GrantState, "all"], Query(description="Only those; all: also what ended")
    ] = "standing",
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> Response:
    """List what was allowed beforehand, the newest first."""
    whose, now = listed(caller, user), edge.clock.now()
    found = [view(one, now) for part in whose for one in await standing(edge.bus, part)]
    wanted = [one for one in found if state in ("all", one.state)]
    wanted.sort(key=lambda one: (one.made_at, one.id), reverse=True)
    return Json(GrantList(grants=tuple(wanted[:limit])))


async def get_grant(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show one; its ETag is its revision."""
    found = await _find(edge, caller.reach, id_)
    return await _shown(edge, found)


async def make_grant(
    edge: Shared, caller: Caller, wanted: Annotated[GrantBody, Depends(body_of(GrantBody))]
) -> Response:
    """Allow calls beforehand; 422 for what would allow everything, and beyond 200."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    now = edge.clock.now()
    id_ = edge.context.new_id().replace("-", "")
    owner = caller.owner_of(wanted.agent_id)
    check_reach(caller, owner, wanted.agent_id, "agentId")
    whose = holding(owner, wanted.agent_id)
    if wanted.approval_id is not None:
        await _check_approval(edge, whose, wanted.approval_id)
    if wanted.row:
        await _check_row(edge, whose, wanted.row)
    if wanted.goal:
        await goals.check_there(edge.bus, whose, wanted.goal)

    def make(others: list[Grant]) -> Grant:
        return check(_grant(wanted, owner, id_, others, now))

    change = Change(by=caller.user, why=wanted.why, cause=wanted.approval_id or "")
    made = await KeptBoard(edge.bus, GRANTS).create(make, whose, change, now)
    log.info("grant made", action="gateway.grant", grant=id_, tool=wanted.tool, by=caller.user)
    return await _shown(edge, made, 201)


async def revoke_grant(edge: Shared, caller: Caller, id_: Id, expected: Expected) -> Response:
    """End one: nothing runs by it from then on."""
    found = await _find(edge, caller.reach, id_)
    preconditions.check(expected, found.number)
    if found.entity.revoked_at is None:
        if found.entity.made_by == "configuration":
            raise Problem(409, "it stands in vigil.toml: remove it there")
        now = edge.clock.now()
        ended = replace(found.entity, revoked_at=now)
        try:
            found = await KeptBoard(edge.bus, GRANTS).replace(
                found.number, ended, Change(by=caller.user, why="revoked"), now
            )
        except WrongLastSequence:
            raise preconditions.changed() from None
        log.info("grant revoked", action="gateway.grant", grant=id_, by=caller.user)
    return await _shown(edge, found)


# ---------------------------------------------------------------- inside


def _grant(wanted: GrantBody, owner: str, id_: str, others: list[Grant], now: datetime) -> Grant:
    return Grant(
        id=id_,
        name=_name(wanted.name, others),
        owner=owner,
        agent=wanted.agent_id,
        tool=wanted.tool,
        constraints=wanted.constraints,
        session_key=wanted.session_key,
        row=wanted.row,
        goal=wanted.goal,
        expires_at=wanted.expires_at,
        uses_max=wanted.uses_max,
        holds_for_outside=wanted.holds_for_outside,
        made_by="person" if wanted.approval_id is None else "approval",
        made_at=now,
        cause=wanted.approval_id or "",
        why=wanted.why,
    )


def _name(wanted: str | None, others: list[Grant]) -> str:
    """Return the name of a new grant. Raises: Problem, 409, another of theirs has it."""
    taken = {one.name for one in others}
    if wanted in taken:
        raise Problem(409, f"a grant of yours is named {wanted!r} already", field="name")
    free = (f"g{number}" for number in range(1, len(taken) + 2))
    return next(name for name in free if name not in taken) if wanted is None else wanted


async def _check_approval(edge: Edge, whose: Scope, id_: str) -> None:
    found = await Board(edge.bus, Approval).find([whose], id_) if id_.isalnum() else None
    if found is None:
        raise Problem(422, "approval_id: you have no such request", field="approval_id")
    if found.fields is not None:
        raise Problem(
            422, "approval_id: a server asked that, and it's no call", field="approval_id"
        )


async def _check_row(edge: Edge, whose: Scope, id_: str) -> None:
    found = await KeptBoard(edge.bus, ROWS).find([whose], id_) if id_.isalnum() else None
    if found is None or found.entity.is_removed:
        raise Problem(422, "row: you have no such row of the timetable", field="row")


async def _find(edge: Edge, whose: Iterable[Scope], id_: str) -> Revision[Grant]:
    """Raises: Problem, 404: the caller has no such grant."""
    found = await KeptBoard(edge.bus, GRANTS).find(whose, id_)
    if found is None:
        raise Problem(404, "there is no such grant")
    return found


async def _shown(edge: Edge, found: Revision[Grant], status: int = 200) -> Response:
    grant = found.entity
    used = await KeptBoard(edge.bus, USES).find([Scope(grant.agent, grant.owner)], grant.id)
    one = standing_of(found, None if used is None else used.entity)
    return preconditions.tagged(Json(view(one, edge.clock.now()), status), found.number)
