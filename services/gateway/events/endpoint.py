"""POST /api/events: what another system tells a session, as a CloudEvent.

The attribute `subject` is the session; without it, it's the agent's mind (attribute `agentid`). The
event is marked untrusted, whoever sent it: a token
says who let it in, not who wrote it. Only a hook may be trusted, by the configuration. It's for an
agent that there is: an event makes sessions, but only a person makes an agent, by talking with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fastapi import Request, Response

from vigil.errors import InvalidInput
from vigil.minds import mind_of
from vigil.observe import metrics
from vigil.settings.config import Config
from vigil.settings.switches import has_mind
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, SessionKey, check_part
from vigil.teams import DEFAULT_AGENT, may_act, owner_of

from ..access import check_reach, own_session, plain_session
from ..callers import Caller, Shared
from ..http import body
from ..http.decide import external_event_id
from ..http.json import Json
from ..http.wire import Accepted
from ..known_agents import check_agent
from ..sessions.messages import parent_of
from ..state.edge import Edge
from . import cloud_events
from .cloud_events import EventLimits, OutsideEvent


def limits_of(edge: Edge) -> EventLimits:
    """Return how much of an event this gateway takes in."""
    config = edge.config
    return EventLimits(
        content_bytes_max=config.text_bytes_max, json_depth_max=config.json_depth_max
    )


def session_of(event: OutsideEvent, principal: Principal, config: Config) -> SessionKey:
    """Return the session that an event of `principal` is for.

    Raises:
        InvalidInput: it names one of the cortex itself, or an agent other than its own; or none,
            and the agent has no mind.
        Problem: 404, it's somebody else's; 403, a team's.
    """
    if not event.subject:
        mind = _mind(event, principal.user, config)
        check_reach(principal, mind.user, mind.agent, "agentid")
        return mind
    with _of_subject():
        session = own_session(event.subject, principal)
    return _with_agent(event, session)


def session_for(event: OutsideEvent, user: str, config: Config) -> SessionKey:
    """Return the session that an event on the bus is for: one of `user`'s or of their team's.

    Raises:
        InvalidInput: it isn't, or as above.
    """
    if not event.subject:
        return _mind(event, user, config)
    with _of_subject():
        session = plain_session(SessionKey.parse(event.subject))
    if not may_act(user, session.user, session.agent, config.teams):
        raise InvalidInput("subject", "is a session of another user than the credential's")
    return _with_agent(event, session)


@contextlib.contextmanager
def _of_subject() -> Iterator[None]:
    """Name the attribute that the sender wrote, where a part of the session is wrong."""
    try:
        yield
    except InvalidInput as error:
        part = "" if error.field == "session_key" else f"{error.field} "
        raise InvalidInput("subject", f"{part}{error.reason}") from error


def _mind(event: OutsideEvent, user: str, config: Config) -> SessionKey:
    """Return the mind that an event without a subject is for. Raises: InvalidInput."""
    agent = check_part("agentid", event.agent or DEFAULT_AGENT)
    if not has_mind(config, agent):
        why = "is required: the session, userId:agentId:threadId (the mind of this agent is off)"
        raise InvalidInput("subject", why)
    return mind_of(Scope(agent, owner_of(user, agent, config.teams)))


async def check_agent_of(
    edge: Edge, event: OutsideEvent, session: SessionKey, caller: Principal
) -> None:
    """Refuse an event for an agent that there isn't.

    Args:
        caller: who sent it; of a program on the bus, its person.

    Raises:
        InvalidInput: naming the attribute, with the nearest agent that there is.
        Unavailable: the broker can't tell.
    """
    if not event.subject:
        await check_agent(edge, caller, session.agent, "agentid")
        return
    with _of_subject():
        await check_agent(edge, caller, session.agent)


def _with_agent(event: OutsideEvent, session: SessionKey) -> SessionKey:
    if event.agent and event.agent != session.agent:
        raise InvalidInput("agentid", "is another agent than that of the subject; leave it out")
    return session


async def take(
    edge: Edge,
    session: SessionKey,
    user: str,
    event: OutsideEvent,
    *,
    source: str,
    parent: str | None,
    is_trusted: bool = False,
) -> Accepted:
    """Store an event for `session` once, however often `user` sends it.

    Args:
        source: who let it in, as `ExternalPayload.source` has it.
        is_trusted: whether the configuration trusts that source; a person may, too.

    Raises:
        InvalidInput: its id was used before, for another event.
        Problem: 429 that source floods the session, or it's too far behind; 503.
    """
    event_id = external_event_id(user, source, event.origin, event.id)
    payload = event.payload(source, is_trusted=is_trusted)
    await edge.throttle.let_in(session, source)
    is_known = edge.switches.trusted.has(session.scope, source)
    accepted = await edge.intake.accept_external(
        session, event_id, payload, parent=parent, is_trusted=is_known
    )
    edge.context.metrics.count(metrics.OUTSIDE, source.partition(":")[0])
    return accepted


async def post_event(request: Request, edge: Shared, caller: Caller) -> Response:
    """Tell a session something, as a CloudEvent: structured JSON, or binary with ce-* headers."""
    scope = request.scope
    data = await body.read(scope, request.receive, edge.config.body_bytes_max)
    event = cloud_events.of_http(scope["headers"], data, limits_of(edge))
    session = session_of(event, caller, edge.context.settings.config)
    await check_agent_of(edge, event, session, caller)
    accepted = await take(
        edge, session, caller.user, event, source=f"api:{caller.user}", parent=parent_of(scope)
    )
    return Json(accepted, 202)
