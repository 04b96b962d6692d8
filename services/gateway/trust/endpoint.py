"""/api/trust: sources that a person trusts from now on (FLOW F-15). Nobody else writes them."""

from __future__ import annotations

from typing import Annotated, Final

import structlog
from fastapi import Depends, Query, Response

from vigil.contracts import Instant
from vigil.settings.tokens import Principal
from vigil.subjects import PartText, Scope, check_part, token_of
from vigil.trust import kept
from vigil.trust.sources import MEANING, SOURCES_MAX, Trusted, check_source

from ..access import check_reach
from ..callers import Caller, Shared, body_of, id_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import PART_SCHEMA, Answer, RequestBody
from ..known_agents import check_agent
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

PATH: Final = "/api/trust"
Id = Annotated[str, Depends(id_of("a trusted source"))]
Agent = Annotated[str, Query(alias="agentId", json_schema_extra=PART_SCHEMA)]


class TrustBody(RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId"}):
    """A source to trust from now on: what comes from exactly it is then no content from outside."""

    source: str
    """`hook:`, `bus:`, `api:` or `mcp:NAME`, `url:` or `feed:https://…`, as a letter names it."""
    agent_id: PartText = "vigil"
    """With which agent."""


class TrustView(
    Answer, frozen=True, kw_only=True, rename={"agent_id": "agentId", "user_id": "userId"}
):
    """A source that is trusted."""

    id: str
    source: str
    meaning: str
    """What that means, in a sentence."""
    user_id: str
    agent_id: str
    at: Instant
    by: str


class TrustList(Answer, frozen=True, kw_only=True):
    """What is trusted beyond what is configured, by name."""

    sources: tuple[TrustView, ...]


def view_of(one: Trusted) -> TrustView:
    return TrustView(
        id=token_of("source", one.source),
        source=one.source,
        meaning=MEANING.format(source=one.source),
        user_id=one.owner,
        agent_id=one.agent,
        at=one.at,
        by=one.by,
    )


async def list_trusted(edge: Shared, caller: Caller, agent: Agent = "vigil") -> Response:
    """List the sources that you trust with an agent."""
    found = edge.switches.trusted.of(_whose(caller, agent))
    return Json(TrustList(sources=tuple(map(view_of, found))))


async def trust_source(
    edge: Shared, caller: Caller, wanted: Annotated[TrustBody, Depends(body_of(TrustBody))]
) -> Response:
    """Trust a source from now on. What came from it before stays as it is."""
    whose = _changeable(edge, caller, wanted.agent_id)
    await check_agent(edge, caller, whose.agent)
    source = check_source(wanted.source)
    there = edge.switches.trusted.of(whose)
    known = next((one for one in there if one.source == source), None)
    if known is not None:
        return Json(view_of(known), 201)
    if len(there) >= SOURCES_MAX:
        raise Problem(409, f"you trust {SOURCES_MAX} sources already; end one first")
    trusted = Trusted(
        owner=whose.owner, agent=whose.agent, source=source, at=edge.clock.now(), by=caller.user
    )
    await kept.add(edge.bus, trusted)
    edge.switches.trusted.know(trusted)
    log.info("source trusted", action="gateway.trust", by=caller.user, source=source)
    return Json(view_of(trusted), 201)


async def distrust_source(
    edge: Shared, caller: Caller, id_: Id, agent: Agent = "vigil"
) -> Response:
    """Trust a source no more: what comes from it next is content from outside again."""
    whose = _changeable(edge, caller, agent)
    there = edge.switches.trusted.of(whose)
    found = next((one for one in there if token_of("source", one.source) == id_), None)
    if found is None:
        raise Problem(404, "you trust no such source")
    await kept.remove(edge.bus, whose, found.source)
    edge.switches.trusted.forget(found)
    log.info("source distrusted", action="gateway.trust", by=caller.user, source=found.source)
    return Json(view_of(found))


def _whose(caller: Principal, agent: str) -> Scope:
    check_part("agentId", agent)
    owner = caller.owner_of(agent)
    check_reach(caller, owner, agent, "agentId")
    return Scope(agent, owner)


def _changeable(edge: Edge, caller: Principal, agent: str) -> Scope:
    """Return whose sources the caller may change: their own, or their team's, whose agent obeys
    each member as it is. Raises: Problem."""
    whose = _whose(caller, agent)
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    return whose


ENDPOINTS: Final = (
    Endpoint("GET", PATH, list_trusted, {200: TrustList}, (403, 422, 503)),
    Endpoint("POST", PATH, trust_source, {201: TrustView}, (403, 409, 413, 422, 503), TrustBody),
    Endpoint(
        "DELETE", f"{PATH}/{{id}}", distrust_source, {200: TrustView}, (403, 404, 409, 422, 503)
    ),
)
