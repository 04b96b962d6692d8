"""/api/pause: nothing unasked, of any agent or of one, for all or for one person (LOOPS L-5)."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response

from vigil.contracts.base import NEVER
from vigil.errors import InvalidInput
from vigil.marks import agent_pause
from vigil.settings import switches
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, check_part
from vigil.teams import TEAM

from ..callers import Caller, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import PART_SCHEMA, PauseState
from ..known_agents import check_agent
from ..state.edge import Edge

Agent = Annotated[
    str | None,
    Query(description="This one alone; absent: all", json_schema_extra=PART_SCHEMA),
]
Mine = Annotated[bool, Query(description="With `agent`: for yourself alone")]


async def pause(edge: Shared, caller: Caller, agent: Agent = None, mine: Mine = False) -> Response:
    """Pause everything proactive, everywhere, or of one agent.

    For everybody it's an admin's, of a team's agent its members', too. Oneself one may pause.
    """
    at = edge.clock.now()
    if agent is not None:
        return await _switched(edge, caller, agent, is_mine=mine, is_on=True)
    _check_all(caller, is_mine=mine)
    await switches.pause(edge.bus, at=at, by=caller.user)
    return Json(PauseState(paused=switches.Paused(at=at, by=caller.user)))


async def resume(edge: Shared, caller: Caller, agent: Agent = None, mine: Mine = False) -> Response:
    """End the pause: that of all, or of one agent."""
    if agent is not None:
        return await _switched(edge, caller, agent, is_mine=mine, is_on=False)
    _check_all(caller, is_mine=mine)
    await switches.resume(edge.bus)
    return Json(PauseState(paused=None))


def _check_all(caller: Principal, *, is_mine: bool) -> None:
    if is_mine:
        raise InvalidInput("mine", "needs agent; PATCH /api/person pauses all of yours")
    if not caller.is_admin:
        raise Problem(403, "this needs an admin token; PATCH /api/person pauses yours (`--mine`)")


async def _switched(
    edge: Edge, caller: Principal, agent: str, *, is_mine: bool, is_on: bool
) -> Response:
    check_part("agent", agent)
    if not (is_mine or caller.is_admin or caller.may_reach(TEAM, agent)):
        raise Problem(403, "only an admin may for everybody; mine=true (`--mine`) does for you")
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    if is_on or edge.switches.agents.changed_at(Scope(agent, caller.user)) == NEVER:
        await check_agent(edge, caller, agent, "agent")  # what was once set, can be ended
    user, at = caller.user if is_mine else None, edge.clock.now()
    set_ = await agent_pause.put(edge.bus, agent, user, is_on=is_on, at=at, by=caller.user)
    paused = switches.Paused(at=set_.at, by=set_.by) if is_on else None
    return Json(PauseState(paused=paused, agent=agent, user=user))


_PATH: Final = "/api/pause"
ENDPOINTS: Final = (
    Endpoint("PUT", _PATH, pause, {200: PauseState}, (403, 409, 422, 503)),
    Endpoint("DELETE", _PATH, resume, {200: PauseState}, (403, 409, 422, 503)),
)
