"""/api/agents: which agents there are, made and changed by admins in vigil.toml and their files.

It's what `vigil agents` does, in the same way; a running cortex and scheduler take it in within two
seconds. Teams are made in the file: who is a member decides who may read what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
import structlog
from fastapi import Depends, Response
from msgspec import UNSET, UnsetType

from vigil.edits import agent_sections
from vigil.settings.config import Settings
from vigil.subjects import PartText, check_part

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..state.edge import Edge
from ..written_settings import WRITING, read_settings, written
from .agent_files import AgentName

log = structlog.get_logger("vigil.gateway")

Authority = Literal["off", "observe", "suggest", "act"]
AUTHORITIES: Final[tuple[str, ...]] = get_args(Authority)
Text = Annotated[str, msgspec.Meta(max_length=32 * 1024)]


class AgentView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """An agent, as the configuration has it now."""

    name: str
    kind: str
    """`personal`, or `team`: made and changed in the file alone."""
    authority: Authority
    """What it may do unasked."""
    model: str
    """Its own; empty: `model.main`."""
    looks: tuple[str, ...]
    """What it keeps up with."""
    channels: tuple[str, ...]
    """On which one talks with it."""


class AgentsView(Answer, frozen=True, kw_only=True):
    """All agents of this home."""

    agents: tuple[AgentView, ...]


class AgentChange(RequestBody, frozen=True, kw_only=True):
    """What of an agent is to be otherwise."""

    authority: Authority | UnsetType = UNSET
    model: Annotated[str, msgspec.Meta(max_length=200)] | UnsetType = UNSET
    """Empty: `model.main`."""
    looks: (
        Annotated[
            tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=2000)], ...],
            msgspec.Meta(max_length=50),
        ]
        | UnsetType
    ) = UNSET
    """All that it keeps up with: addresses, `feed:`, `search:`, `mcp:SERVER__TOOL`."""


class AgentWanted(AgentChange, frozen=True, kw_only=True):
    """A new agent."""

    name: PartText
    role: Text = ""
    """What ROLE.md says: what it does. Empty: as a new agent's says."""


async def list_agents(edge: Shared, _: Admin) -> Response:
    """List the agents of this home. Needs an admin token."""
    return Json(AgentsView(agents=await _views(edge)))


async def make_agent(
    edge: Shared, caller: Admin, wanted: Annotated[AgentWanted, Depends(body_of(AgentWanted))]
) -> Response:
    """Make an agent; everybody may talk with it at once. Needs an admin token."""
    name = check_part("name", wanted.name)
    texts = {"ROLE.md": wanted.role} if wanted.role else {}
    changes = _changes(wanted)
    made = await _done(
        edge, name, lambda settings: agent_sections.make(settings, name, changes, texts)
    )
    log.info("agent made", action="gateway.agents", by=caller.user, agent=name)
    return Json(made, 201)


async def change_agent(
    edge: Shared,
    caller: Admin,
    agent: AgentName,
    wanted: Annotated[AgentChange, Depends(body_of(AgentChange))],
) -> Response:
    """Change an agent in vigil.toml; comments and order stay. Needs an admin token."""
    name, changes = check_part("agentId", agent), _changes(wanted)
    found = await _done(
        edge, name, lambda settings: agent_sections.change(settings, name, changes, {})
    )
    log.info("agent changed", action="gateway.agents", by=caller.user, agent=name)
    return Json(found)


def _changes(wanted: AgentChange) -> dict[str, Any]:
    given = {key: getattr(wanted, key) for key in ("authority", "model", "looks")}
    return {key: one for key, one in given.items() if one is not UNSET}


async def _done(edge: Edge, name: str, write: Callable[[Settings], None]) -> AgentView:
    """Return an agent once it is written. Raises: Problem, 404 or 409."""
    async with WRITING:
        settings = await read_settings(edge)
        if settings.config.agent_of(name).kind == "team":
            raise Problem(409, f"{name} is a team's: change it in vigil.toml", field="agentId")
        await written(settings, lambda: write(settings), field="agentId")
        views = await _views(edge)
    return next(one for one in views if one.name == name)


async def _views(edge: Edge) -> tuple[AgentView, ...]:
    """Return the agents as the file has them now."""
    settings = await read_settings(edge)
    found = await asyncio.to_thread(agent_sections.found, settings)
    return tuple(
        AgentView(
            name=one.name,
            kind=one.settings.kind,
            authority=one.settings.authority,
            model=one.settings.model,
            looks=agent_sections.lines_of(one.settings),
            channels=one.channels,
        )
        for one in found
    )


_PATH: Final = "/api/agents"
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_agents, {200: AgentsView}, (403, 503)),
    Endpoint("POST", _PATH, make_agent, {201: AgentView}, (403, 409, 413, 422, 503), AgentWanted),
    Endpoint(
        "PATCH",
        f"{_PATH}/{{agentId}}",
        change_agent,
        {200: AgentView},
        (403, 404, 409, 413, 422, 503),
        AgentChange,
    ),
)
