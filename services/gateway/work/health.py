"""/api/health: what isn't asked for a while because it failed, asking it again, and what hangs
(SPEC C-5)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from fastapi import Depends, Response

from vigil import circuits
from vigil.contracts import Circuit
from vigil.contracts.board import CircuitState
from vigil.words.nearest import meant

from ..callers import Admin, Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..insight.status import own_of

NAME_LENGTH_MAX: Final = 400
SHOWN_MAX: Final = 500
"""Circuits, the newest."""


class CircuitView(Answer, frozen=True, kw_only=True):
    """Whether a part is asked at present."""

    name: str
    """What it is and how it's called: `model:claude`, `mcp:files`."""
    state: CircuitState
    reason: str = ""
    """Why it opened."""
    opened_at: datetime | None = None
    changed_at: datetime
    until: datetime | None = None
    """Open: when a call is tried. Half open: so long that one is waited for."""


class SessionHealth(Answer, frozen=True, kw_only=True):
    """A session that hangs, or that nearly fills its context window."""

    session_key: str
    stuck_s: int | None = None
    """It owes a step and commits nothing for so long; it's opened anew."""
    fill: float | None = None
    """Which part of the window it fills; at 0.8 the oldest part is summed up."""


class BranchLatency(Answer, frozen=True, kw_only=True):
    """How long the newest branches took, in seconds, and whether that changes."""

    count: int
    p50_s: float
    p95_s: float
    earlier_p50_s: float | None
    """Of those before them."""
    trend: Literal["unknown", "steady", "slower", "faster"]


class HealthView(Answer, frozen=True, kw_only=True):
    """What failed again and again; what never did is not in it. Sessions are looked at every
    30 s."""

    circuits: tuple[CircuitView, ...]
    sessions: tuple[SessionHealth, ...]
    branches: BranchLatency | None
    """Of everybody's; null: none ended since it's watched."""


class CircuitReset(RequestBody, frozen=True, kw_only=True):
    """Have a part asked again at once."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]


async def get_health(edge: Shared, caller: Caller) -> Response:
    """Tell what isn't asked for a while because it failed, what hangs, and how long branches take:
    of what all share, and of sessions that the caller may read."""
    whose = caller.reach if caller.is_admin else (circuits.SHARED, *caller.reach)
    found = [_view(one) async for one in circuits.each(edge.bus, whose)]
    found.sort(key=lambda one: (one.state == "closed", -one.changed_at.timestamp()))
    replicas = await edge.readiness.replicas()
    sessions = [one for replica in replicas for one in own_of(caller, replica, "sessions")]
    branches = [one.facts["branches"] for one in replicas if one.facts.get("branches")]
    return Json(
        HealthView(
            circuits=tuple(found[:SHOWN_MAX]),
            sessions=msgspec.convert(sessions, tuple[SessionHealth, ...]),
            branches=msgspec.convert(branches[0], BranchLatency) if branches else None,
        )
    )


async def reset_circuit(
    edge: Shared, caller: Admin, wanted: Annotated[CircuitReset, Depends(body_of(CircuitReset))]
) -> Response:
    """Have a part asked again at once. Needs an admin token."""
    now = edge.clock.now()
    found = await circuits.reset(edge.bus, wanted.name, by=caller.user, now=now)
    if found is None:
        there = sorted([one.component async for one in circuits.each(edge.bus, caller.reach)])
        reason = f"there is no circuit {wanted.name!r}: it never opened{meant(wanted.name, there)}"
        raise Problem(404, reason)
    return Json(_view(found))


def _view(one: Circuit) -> CircuitView:
    return CircuitView(
        name=one.component,
        state=one.state,
        reason=one.reason,
        opened_at=one.opened_at,
        changed_at=one.changed_at,
        until=one.until,
    )


_RESET: Final = (403, 404, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", "/api/health", get_health, {200: HealthView}, (503,)),
    Endpoint("POST", "/api/health/reset", reset_circuit, {200: CircuitView}, _RESET, CircuitReset),
)
