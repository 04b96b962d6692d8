"""/a2a/{agentId} and the cards of agents."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import Request, Response

from vigil import __version__
from vigil.distribution import command_for
from vigil.local.identity_files import agents_there
from vigil.settings.tokens import Principal

from ..access import check_reach
from ..callers import Caller, Shared
from ..clients import serve_until_gone
from ..door import CARD
from ..endpoint import Endpoint
from ..http import body
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import JsonRpc
from ..insight.agent_files import AgentName
from ..state.edge import Edge
from .card import AgentCardView, card_of

PATH: Final = "/a2a/{agentId}"
AGENT: Final = "vigil"
_OFF: Final = "agents don't speak A2A here: `gateway.a2a` is off"
_MISSING: Final = f"the extra `a2a` isn't installed: {command_for('a2a')}"


async def get_agent_card(request: Request, edge: Shared) -> Response:
    """Show how the agent `vigil` is reached by A2A. Anybody may ask."""
    _check_on(edge)
    return Json(card_of(AGENT, _own_url(request, edge), __version__))


async def get_card_of_agent(
    request: Request, edge: Shared, caller: Caller, agent: AgentName
) -> Response:
    """Show how an agent is reached by A2A."""
    _check_on(edge)
    _check_there(edge, caller, agent)
    return Json(card_of(agent, _own_url(request, edge), __version__))


async def post_a2a(request: Request, edge: Shared, caller: Caller, agent: AgentName) -> Response:
    """Talk with an agent by A2A 1.0: JSON-RPC, answered whole or as a stream of events."""
    _check_on(edge)
    _check_there(edge, caller, agent)
    limits = edge.config.body_bytes_max, edge.config.json_depth_max
    data = await body.read_shallow(request.scope, request.receive, *limits)
    return _A2aAnswer(edge, data)


class _A2aAnswer(Response):
    """Has the SDK answer a request whose body was read already."""

    def __init__(self, edge: Edge, data: bytes) -> None:
        super().__init__()
        self._edge = edge
        self._data = data

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Whether the client has gone is seen below.
        replay = body.replayed(self._data, asyncio.Event().wait)

        async def serve() -> None:
            dispatcher = await _dispatcher(scope["app"], self._edge)
            answer = await dispatcher.handle_requests(Request(scope, replay))
            await answer(scope, replay, send)

        await serve_until_gone(serve(), receive, self._edge.stopping, "gateway-a2a")


async def _dispatcher(app: Any, edge: Edge) -> Any:
    """Return the SDK's side of it: imported with the first request, in a thread, as it takes a
    second."""
    found = getattr(app.state, "a2a", None)
    if found is None:
        found = app.state.a2a = await asyncio.to_thread(_build, edge)
    return found


def _build(edge: Edge) -> Any:
    try:
        from .handler import dispatcher_of
    except ImportError as error:
        raise Problem(503, _MISSING) from error
    return dispatcher_of(edge)


def _check_on(edge: Edge) -> None:
    if not edge.config.a2a:
        raise Problem(404, _OFF)


def _check_there(edge: Edge, caller: Principal, agent: str) -> None:
    check_reach(caller, caller.owner_of(agent), agent, "agentId")
    if agent not in agents_there(edge.context.settings):
        raise Problem(404, f"there is no agent {agent[:60]!r}")


def _own_url(request: Request, edge: Edge) -> str:
    """Return where the gateway is reached: as configured, or as it was just now."""
    return edge.config.public_url.rstrip("/") or str(request.base_url).rstrip("/")


ENDPOINTS: Final = (
    Endpoint("GET", CARD, get_agent_card, {200: AgentCardView}, (404,)),
    Endpoint("GET", f"{PATH}{CARD}", get_card_of_agent, {200: AgentCardView}, (403, 404, 422)),
    Endpoint("POST", PATH, post_a2a, {200: JsonRpc}, (403, 404, 413, 422, 503), JsonRpc),
)
