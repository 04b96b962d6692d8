"""The endpoints of the whole: who one is, how it all is, metrics."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import Response

from vigil.calendars import state as calendars
from vigil.contacts import state as contacts
from vigil.observe import metrics, warmth
from vigil.observe.health import Alive, Health
from vigil.settings import mailboxes, switches
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.teams import TEAM, reach_of

from ..callers import Admin, Caller, Shared
from ..http.json import Json
from ..http.readiness import REPLICAS_MAX
from ..http.wire import (
    Me,
    PauseState,
    Readiness,
    Status,
)
from ..state.edge import Edge

METRICS_WINDOW_S: Final = 0.5
OF_SESSIONS: Final = ("patterns", "sessions")
"""Facts of replicas that name sessions."""


async def get_me(caller: Caller, edge: Shared) -> Response:
    """Tell who the token speaks for."""
    home = edge.context.settings.config.person_of(caller.user).home_thread
    teams = tuple(one.agent for one in reach_of(caller.user, caller.teams) if one.owner == TEAM)
    return Json(Me(user=caller.user, is_admin=caller.is_admin, home_thread=home, teams=teams))


def shown_to(caller: Principal, replica: Health) -> Health:
    """Return what a caller may know of a replica: some facts name sessions, which are people's."""
    if caller.is_admin:
        return replica
    # Names of these are people's, too: `/api/calendars` and `/api/contacts` have one's own.
    theirs = (calendars.FACT, contacts.FACT, mailboxes.FACT)
    others = {name: fact for name, fact in replica.facts.items() if name not in theirs}
    own = {name: own_of(caller, replica, name) for name in OF_SESSIONS if name in replica.facts}
    return msgspec.structs.replace(replica, facts=others | own)


def own_of(caller: Principal, replica: Health, name: str) -> list[dict[str, Any]]:
    """Return what of a fact about sessions a caller may know."""
    found = replica.facts.get(name, ())
    keys = ((one, SessionKey.parse(one["session_key"])) for one in found)
    return [one for one, key in keys if caller.is_admin or caller.may_reach(key.user, key.agent)]


async def get_status(edge: Shared, caller: Caller) -> Response:
    """Tell what runs, and whether it's paused."""
    there = await edge.readiness.replicas()
    replicas = tuple(shown_to(caller, one) for one in there)
    models = (one.facts["model"] for one in replicas if "model" in one.facts)
    return Json(
        Status(
            services=replicas,
            paused=edge.switches.paused,
            paused_agents=paused_agents(edge, caller),
            model=next(models, None),
            warmth=warmth.of(replicas),
            bulletins_owed=warmth.owed(there),
            cold_sessions=warmth.cold_sessions(there),
            at=edge.clock.now(),
        )
    )


async def get_metrics(edge: Shared, caller: Admin) -> Response:
    """Read the metrics of all services, in Prometheus' text format."""
    # Who does not answer in the window is missing, as a target that is down would be.
    answers = await edge.bus.ask_all(
        metrics.SUBJECT, b"", count=REPLICAS_MAX, timeout=METRICS_WINDOW_S
    )
    headers = {"cache-control": "no-store", "content-type": metrics.CONTENT_TYPE}
    return Response(metrics.merged(answers), headers=headers)


def paused_agents(edge: Edge, caller: Principal) -> tuple[PauseState, ...]:
    """Return the agents that are paused for everybody, or for the caller."""
    there = edge.switches.agents.shown_to(caller.user)
    return tuple(
        PauseState(agent=agent, user=user, paused=switches.Paused(at=one.at, by=one.by))
        for agent, user, one in there
    )


async def healthz() -> Response:
    """Tell that the process answers."""
    return Json(Alive(status="alive"))


async def readyz(edge: Shared) -> Response:
    """Tell whether a message would be answered; 503 if not."""
    checks = await edge.readiness.checks() | {"disk": edge.intake.room.has_disk()}
    is_ready = all(checks.values())
    replicas = await edge.readiness.replicas()
    warnings = sorted({one for replica in replicas for one in replica.warnings})
    if warmth.of(replicas) == "cold":
        warnings.append(warmth.COLD)
    answer = Readiness(
        ready=is_ready,
        checks=checks,
        warnings=tuple(warnings),
        warmth=warmth.of(replicas),
        bulletins_owed=warmth.owed(replicas),
    )
    return Json(answer, 200 if is_ready else 503)
