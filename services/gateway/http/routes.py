"""The HTTP endpoints but for the busiest one, as FastAPI routes.

Bodies and answers are msgspec structs: `body_of(T)` decodes, `Json` encodes, and
:mod:`.openapi` adds their schemas to the document that FastAPI makes of the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from fastapi import Depends, Path, Query, Request, Response

from vigil.contracts import TIMER_ID_LENGTH_MAX, ControlPayload
from vigil.contracts.session_kinds import SESSION_KINDS, check_session_kind
from vigil.errors import InvalidInput
from vigil.observe import metrics, warmth
from vigil.observe.health import Alive, Health
from vigil.settings import switches
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.teams import TEAM, reach_of

from ..access import listed, own_session, readable_session
from ..edge import Edge
from ..sessions import chat as chats
from ..sessions import history, inner
from ..sessions.counts import Stretch
from ..sessions.messages import parent_of
from ..sessions.tickets import TICKET_LIFE_S
from ..versions.gone import check_not_deleted, shown
from . import body
from .door import PRINCIPAL
from .problem import Problem
from .readiness import REPLICAS_MAX
from .wire import (
    ID_SCHEMA,
    KEY_SCHEMA,
    OWN_KEY_SCHEMA,
    PART_SCHEMA,
    ChatAnswer,
    ChatRequest,
    Me,
    PauseState,
    Readiness,
    Status,
    Ticket,
    TicketRequest,
)

T = TypeVar("T")
SEQ_MAX: Final = 2**53
METRICS_WINDOW_S: Final = 0.5
OF_SESSIONS: Final = ("patterns", "sessions")
"""Facts of replicas that name sessions."""
_KINDS_MEANT: Final = ", ".join(f"{name}: {kind.meaning}" for name, kind in SESSION_KINDS.items())


class Json(Response):
    """A struct as JSON. Answers are a person's own data: no cache may keep them."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200) -> None:
        super().__init__(content, status_code, headers={"cache-control": "no-store"})

    def render(self, content: Any) -> bytes:
        return msgspec.json.encode(content)


def body_of(
    kind: type[T], other_names: Mapping[str, str] | None = None
) -> Callable[[Request], Awaitable[T]]:
    """Return a dependency that reads and decodes the body as `kind`.

    Args:
        other_names: names that fields have, too, and those that they have in `kind`.
    """
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        config = edge_of(request).config
        data = await body.read(request.scope, request.receive, config.body_bytes_max)
        if other_names:
            data = body.by_documented_names(data, other_names)
        return body.decode(data, decoder, config.json_depth_max)

    return read


def edge_of(request: Request) -> Edge:
    return cast(Edge, request.app.state.edge)


async def _edge(request: Request) -> Edge:
    return edge_of(request)


async def _principal(request: Request) -> Principal:
    return cast(Principal, request.scope[PRINCIPAL])


async def _session(
    request: Request,
    key: Annotated[
        str, Path(description="userId:agentId:threadId", json_schema_extra=OWN_KEY_SCHEMA)
    ],
) -> SessionKey:
    return shown(edge_of(request), own_session(key, request.scope[PRINCIPAL]))


async def _own_session(
    request: Request,
    key: Annotated[
        str, Path(description="userId:agentId:threadId", json_schema_extra=OWN_KEY_SCHEMA)
    ],
) -> SessionKey:
    return own_session(key, request.scope[PRINCIPAL])


async def _readable(
    request: Request,
    key: Annotated[str, Path(description="userId:agentId:threadId", json_schema_extra=KEY_SCHEMA)],
) -> SessionKey:
    return shown(edge_of(request), readable_session(key, request.scope[PRINCIPAL]))


async def _admin(request: Request) -> Principal:
    principal = cast(Principal, request.scope[PRINCIPAL])
    if not principal.is_admin:
        raise Problem(403, "this needs an admin token")
    return principal


def id_of(what: str, name: str = "") -> Callable[[str], Awaitable[str]]:
    """Return a dependency that reads the id of `what` from the path: 32 hex digits.

    Args:
        name: a pattern of what is taken, too; empty: nothing is.
    """
    form = f"32 hex digits{name and ', or its short name'}"
    pattern = f"^([0-9a-f]{{32}}|{name})$" if name else ID_SCHEMA["pattern"]
    described = Path(
        alias="id", description=f"Of {what}: {form}", json_schema_extra={"pattern": pattern}
    )

    async def read(id_: str = described) -> str:
        if re.fullmatch(pattern, id_) is None:
            raise InvalidInput("id", f"must be {form}")
        return id_

    return read


Shared = Annotated[Edge, Depends(_edge)]
Caller = Annotated[Principal, Depends(_principal)]
Admin = Annotated[Principal, Depends(_admin)]
Session = Annotated[SessionKey, Depends(_session)]
OwnSession = Annotated[SessionKey, Depends(_own_session)]
"""Also one that is being deleted."""
Readable = Annotated[SessionKey, Depends(_readable)]
"""Also a session of the agent's own, which nobody may say anything in."""
User = Annotated[
    str | None,
    Query(
        description="Whose: oneself, or `team`; an admin may name anybody",
        json_schema_extra=PART_SCHEMA,
    ),
]
After = Annotated[int, Query(ge=0, le=SEQ_MAX, description="Continue after this sequence")]


TimerId = Annotated[str, Path(json_schema_extra={"maxLength": TIMER_ID_LENGTH_MAX})]


# ---------------------------------------------------------------- talking


async def chat(
    request: Request,
    edge: Shared,
    caller: Caller,
    said: Annotated[ChatRequest, Depends(body_of(ChatRequest))],
) -> Response:
    """Say something and wait for the answer; after `gateway.chat_wait_s`, 202 without it."""
    answer = await chats.chat(edge, caller, said, parent_of(request.scope), request.receive)
    return Json(answer, 200 if isinstance(answer, ChatAnswer) else 202)


async def give_ticket(
    edge: Shared,
    caller: Caller,
    wanted: Annotated[TicketRequest, Depends(body_of(TicketRequest))],
) -> Response:
    """Get a ticket that opens one WebSocket of a session, from a browser."""
    session = shown(edge, own_session(wanted.session, caller))
    ticket = edge.tickets.give(str(session), caller, edge.clock.monotonic())
    return Json(Ticket(ticket=ticket, expires_in_s=TICKET_LIFE_S), 201)


async def needs_upgrade() -> Response:
    """Open a WebSocket: token or ticket, then frames of text.

    From the client: ClientMessage, ClientAck. From here: TokenFrame, MessageFrame,
    AcceptedFrame, ErrorFrame.
    """
    raise Problem(426, "this is a WebSocket", headers={"Upgrade": "websocket"})


# ---------------------------------------------------------------- sessions


async def list_sessions(
    edge: Shared,
    caller: Caller,
    user: User = None,
    kind: Annotated[
        str,
        Query(
            description=f"{_KINDS_MEANT}; all but the first are the agent's own",
            json_schema_extra={"enum": list(SESSION_KINDS)},
        ),
    ] = "channel",
    after: Annotated[str, Query(description="Continue after this session key")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """List sessions by key: one's own and one's teams', or for an admin everybody's."""
    whose = listed(caller, user)
    if check_session_kind(kind) != "channel":
        found = await inner.sessions(edge.bus, whose, kind, after, limit)
    else:
        found = await history.sessions(edge.bus, whose, after, limit)
    there = (one for one in found.sessions if not edge.switches.threads.has(one.session_key))
    return Json(msgspec.structs.replace(found, sessions=tuple(there)))


async def get_transcript(
    edge: Shared,
    session: Readable,
    after: Annotated[
        int | None,
        Query(ge=0, le=SEQ_MAX, description="Continue after this sequence; absent: the newest"),
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, le=SEQ_MAX, description="The newest before this sequence")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Read what was said, oldest first; of a session of the agent's own, its task and thoughts."""
    if after is not None and before is not None:
        raise InvalidInput("before", "can't be given together with after")
    stretch = Stretch(after=after, before=before or 0, limit=limit)
    read = inner.transcript if session.is_system else history.transcript
    found = await read(edge.bus, session, stretch)
    if not found.messages:
        await check_not_deleted(edge, session)
    return Json(found)


async def get_timeline(
    edge: Shared,
    session: Readable,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    turns: Annotated[bool, Query(description="Only turns")] = False,
) -> Response:
    """Read every record of a session, as stored."""
    wanted = session.turns if turns else session.everything
    found = await history.timeline(edge.bus, session, wanted, after, limit)
    if not found.records:
        await check_not_deleted(edge, session)
    return Json(found)


async def get_timers(edge: Shared, session: Readable) -> Response:
    """List the open follow-ups and reminders, soonest first."""
    return Json(await history.timers(edge.bus, session))


async def cancel_timer(
    request: Request, edge: Shared, session: Session, timer_id: TimerId
) -> Response:
    """Cancel a timer, also a reminder."""
    if len(timer_id) > TIMER_ID_LENGTH_MAX:
        raise InvalidInput("timer_id", f"must have at most {TIMER_ID_LENGTH_MAX} characters")
    accepted = await edge.intake.control(
        session,
        ControlPayload(op="cancel_timer", timer_id=timer_id),
        parent=parent_of(request.scope),
    )
    return Json(accepted, 202)


async def stop(request: Request, edge: Shared, session: Readable) -> Response:
    """Stop the running turn of a session; one of the agent's own ends with all that it started."""
    parent = parent_of(request.scope)
    if session.is_system:
        await inner.check_exists(edge.bus, session)
        order = ControlPayload(op="cancel", reason="a person stopped it")
        return Json(await edge.intake.control(session, order, parent=parent), 202)
    return Json(await edge.intake.control(session, ControlPayload(op="stop"), parent=parent), 202)


# ---------------------------------------------------------------- the whole


async def get_me(caller: Caller, edge: Shared) -> Response:
    """Tell who the token speaks for."""
    home = edge.context.settings.config.person_of(caller.user).home_thread
    teams = tuple(one.agent for one in reach_of(caller.user, caller.teams) if one.owner == TEAM)
    return Json(Me(user=caller.user, is_admin=caller.is_admin, home_thread=home, teams=teams))


def shown_to(caller: Principal, replica: Health) -> Health:
    """Return what a caller may know of a replica: some facts name sessions, which are people's."""
    if caller.is_admin:
        return replica
    own = {name: own_of(caller, replica, name) for name in OF_SESSIONS if name in replica.facts}
    return msgspec.structs.replace(replica, facts=replica.facts | own)


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
