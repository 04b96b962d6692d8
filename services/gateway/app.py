"""The ASGI application: a table of routes, and the door around it."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Final, cast

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.routing import Match, Route, WebSocketRoute, compile_path

from vigil import __version__
from vigil.contracts import Signal
from vigil.contracts.events import Attachment
from vigil.memory import wire as memory_wire
from vigil.memory.operation import http_view
from vigil.memory.questions import Rebuild
from vigil.observe.health import Alive

from .a2a import endpoint as a2a
from .attachments import endpoint as attachments
from .board import kinds as on_board
from .by_path import ByPath, LateRoute, ServedRoute, made
from .completions import endpoint as completions
from .console import endpoint as console
from .console.site import Console
from .contacts import endpoint as contacts
from .documents import asyncapi, examples_http, openapi
from .door import Door, is_open
from .endpoint import Endpoint
from .events import added_channels, channels, hooks, mail_accounts, networks
from .events import endpoint as events
from .http import wire
from .http.errors import EXPECTED, HANDLERS, on_error, refuse_method
from .http.wire import (
    Accepted,
    ChatAnswer,
    ChatPending,
    ChatRequest,
    JsonRpc,
    OwnKey,
    PostMessage,
    Readiness,
    SessionList,
    Status,
    Ticket,
    TicketRequest,
    Timeline,
    TimerList,
    Transcript,
)
from .insight import (
    agent_files,
    agents,
    budget,
    calendars,
    calls,
    doctor,
    facts,
    now,
    people,
    status,
    streams,
    tokens,
)
from .memory import mcp, memories
from .models import endpoint as models
from .push import endpoint as push
from .servers import catalogue
from .servers import endpoint as servers
from .sessions import forks, imports, labels, routes
from .sessions.messages import Messages
from .sessions.sockets import Sockets
from .sign_ins import endpoint as sign_ins
from .signals import endpoint as signals
from .state.edge import Edge
from .timetable import autonomy, feed, pauses, slots
from .trust import endpoint as trust
from .trust import letters
from .versions import deletion
from .versions import endpoint as versions
from .why import endpoint as explain
from .why.answer import WhyAnswer
from .work import cost, dead, deliveries, health, person, tools
from .work.letters import DeadLetterDetail, DeadLetterPage

MESSAGES_PATH: Final = Messages.path
SOCKET_PATH: Final = "/api/ws"
_INPUT: Final = (404, 422)
_WRITE: Final = (404, 410, 413, 422, 503)


_S: Final = "/api/sessions/{key}"
_M: Final = "/api/memories"
_OWN: Final = (
    Endpoint("POST", "/api/chat", routes.chat, {200: ChatAnswer, 202: ChatPending},
             (403, 404, 410, 413, 422, 503), ChatRequest),
    Endpoint("POST", "/api/tickets", routes.give_ticket, {201: Ticket}, (404, 410, 413, 422),
             TicketRequest),
    Endpoint("POST", attachments.PATH, attachments.upload_attachment, {201: Attachment},
             (403, 413, 422, 503), described=attachments.DESCRIBED),
    Endpoint("GET", f"{attachments.PATH}/{{hash}}", attachments.get_attachment, {200: bytes},
             (*_INPUT, 503)),
    Endpoint("GET", "/api/sessions", routes.list_sessions, {200: SessionList}, (403, 422, 503)),
    Endpoint("GET", _S, routes.get_transcript, {200: Transcript}, (*_INPUT, 503)),
    Endpoint("GET", f"{_S}/timeline", routes.get_timeline, {200: Timeline}, (*_INPUT, 503)),
    Endpoint("GET", f"{_S}/timers", routes.get_timers, {200: TimerList}, (*_INPUT, 503)),
    Endpoint("DELETE", f"{_S}/timers/{{timer_id:path}}", routes.cancel_timer, {202: Accepted},
             (*_INPUT, 503)),
    Endpoint("POST", f"{_S}/stop", routes.stop, {202: Accepted}, (*_INPUT, 503)),
    Endpoint("GET", SOCKET_PATH, routes.needs_upgrade, {}, (404, 422, 426, 503), None,
             ("session", "client", "cursor", "ticket")),
    Endpoint("GET", "/api/why/{id:path}", explain.get_why, {200: WhyAnswer}, (*_INPUT, 410, 503)),
    Endpoint("POST", "/api/events", events.post_event, {202: Accepted},
             (404, 410, 413, 415, 422, 503), described=openapi.event_in()),
    Endpoint("POST", hooks.PATH, hooks.post_hook, {202: Accepted},
             (401, 404, 413, 422, 429, 503), described=openapi.hook_in()),
    Endpoint("POST", channels.PATH, channels.post_channel, {202: Accepted, 204: None},
             (401, 404, 413, 422, 429, 503), described=openapi.channel_in()),
    Endpoint("GET", "/api/signals", signals.get_signals, {}, (403, *_INPUT, 503), events=Signal),
    Endpoint("GET", "/api/dead", dead.list_dead, {200: DeadLetterPage}, (422, 503)),
    Endpoint("GET", "/api/dead/{id}", dead.get_dead, {200: DeadLetterDetail}, (*_INPUT, 503)),
    Endpoint("POST", "/api/dead/{id}/requeue", dead.requeue_dead, {200: DeadLetterDetail},
             (404, 409, 422, 429, 503)),
    Endpoint("POST", "/api/dead/{id}/discard", dead.discard_dead, {200: DeadLetterDetail},
             (404, 409, 422, 503)),
    Endpoint("GET", "/api/autonomy", autonomy.get_autonomy, {200: autonomy.AutonomyView},
             (403, 422, 503)),
    Endpoint("PATCH", "/api/autonomy", autonomy.change_autonomy, {200: autonomy.AutonomyView},
             (403, 412, 413, 422, 503), autonomy.AutonomyChange),
    Endpoint("GET", "/api/facts", facts.list_facts, {200: facts.FactListing}, (403, 422, 503)),
    Endpoint("GET", "/api/slots/findings", slots.list_findings, {200: slots.FindingListing},
             (403, 422, 503)),
    Endpoint("GET", "/api/slots", slots.list_slots, {200: slots.SlotListing}, (403, *_INPUT, 503)),
    Endpoint("GET", _M, memories.find_memories, {200: memory_wire.MemoryPage}, (403, 422, 503),
             query=memories.search_view().kind),
    Endpoint("POST", f"{_M}/rebuild", memories.rebuild_memories,
             {202: memory_wire.RebuildStarted}, (403, 413, 422, 503), Rebuild, may_be_empty=True),
    Endpoint("POST", "/api/maintenance", memories.maintain_memories,
             {200: memory_wire.MaintenanceDone}, (403, 413, 422, 503), memory_wire.MaintainBody,
             may_be_empty=True),
    Endpoint("POST", "/mcp", mcp.post_mcp,
             {200: JsonRpc, 202: None, 400: JsonRpc, 406: JsonRpc}, (403, 413, 422), JsonRpc,
             query=memory_wire.Whose),
    Endpoint("GET", "/api/me", status.get_me, {200: wire.Me}),
    Endpoint("GET", "/api/cost", cost.get_cost, {200: cost.Costs}, (422, 503)),
    Endpoint("GET", "/api/person", person.get_person, {200: person.PersonView}, (503,)),
    Endpoint("PATCH", "/api/person", person.change_person, {200: person.PersonView},
             (403, 412, 413, 422, 503), person.PersonChange),
    Endpoint("GET", "/api/status", status.get_status, {200: Status}),
    Endpoint("GET", "/metrics", status.get_metrics, {200: str}, (403, 503)),
    Endpoint("GET", "/healthz", status.healthz, {200: Alive}),
    Endpoint("GET", "/readyz", status.readyz, {200: Readiness, 503: Readiness}),
    Endpoint("GET", "/asyncapi.json", asyncapi.get_asyncapi, {200: asyncapi.AsyncApi}),
)  # fmt: skip


def _of_memory() -> list[Endpoint]:
    """Return the rows of the operations on a memory."""
    found = []
    for one, route in memories.served():
        kind = http_view(one).kind
        errors = (403, 422, 503, *route.errors, *((413,) if route.has_body else ()))
        row = Endpoint(
            route.method,
            route.path,
            memories.handler_of(one, route),
            {route.status: one.answer},
            errors,
            body=kind if route.has_body else None,
            query=None if route.has_body else memory_wire.Whose if "{id}" in route.path else kind,
        )
        found.append(row)
    return found


def endpoints() -> tuple[Endpoint, ...]:
    """Return everything that is served here but what comes before the routes."""
    parts = (health, streams, doctor, console, forks, versions, budget, calls, now, people, tokens)
    more = (
        *(agents, agent_files, tools, servers, deliveries, mail_accounts, networks, calendars),
        *(feed, pauses, deletion, letters, trust, labels, push, models, completions, a2a, sign_ins),
        *(contacts, added_channels, catalogue, imports),
    )
    added = (one for part in (*parts, *more) for one in part.ENDPOINTS)
    return tuple(map(_closed, (*_of_memory(), *added, *_OWN, *on_board.endpoints())))


def _closed(one: Endpoint) -> Endpoint:
    """Return an endpoint with what it answers about a conversation that is deleted: 410, of all
    that is asked about one but to delete it."""
    if not one.path.startswith(_S) or (one.method, one.path) == ("DELETE", _S):
        return one
    return msgspec.structs.replace(one, errors=tuple(sorted({*one.errors, 410})))


def build(edge: Edge) -> Door:
    """Wire the application for `edge`."""
    app = _empty()
    app.state.edge = edge
    messages = Route(MESSAGES_PATH, Messages(edge), methods=["POST"])
    socket = WebSocketRoute(SOCKET_PATH, Sockets(edge))
    app.router.routes.append(ByPath((messages, socket, *served(), *Console(edge).routes())))
    return Door(_Shortcut(app, messages), edge)


class _Shortcut:
    """FastAPI, and past its layers the one endpoint that is worth it: they cost half of it."""

    def __init__(self, app: FastAPI, route: Route) -> None:
        self._app = app
        self._route = route
        self._busiest = ServerErrorMiddleware(route.app, on_error)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match, found = self._route.matches(scope)
        if match is not Match.FULL:
            await self._app(scope, receive, send)
            return
        scope.update(found)
        with contextlib.suppress(*EXPECTED):  # answered
            await self._busiest(scope, receive, send)


def _empty() -> FastAPI:
    return FastAPI(
        title="Vigil",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=HANDLERS,
    )


@functools.cache
def served() -> tuple[ServedRoute, ...]:
    """Return the routes that know no `Edge`: they find it in the request."""
    hidden = [Route(path, refuse_method, methods=many) for path, many in _hidden().items()]
    late = [LateRoute(one.path, functools.partial(_made, one)) for one in endpoints()]
    return (*hidden, *late, Route("/openapi.json", _get_document, methods=["GET"]))


@functools.cache
def described() -> FastAPI:
    """Return all of them, made, as FastAPI describes them."""
    app = _empty()
    app.router.routes += map(made, served())
    return app


@functools.cache
def _maker() -> FastAPI:
    return _empty()


def _made(endpoint: Endpoint) -> Route:
    app = _maker()
    is_public = is_open(endpoint.path)
    errors = endpoint.errors if is_public else (*endpoint.errors, 401, 429)
    if 413 in errors:
        errors = (*errors, 415)  # whatever has a body may have it compressed
    extra: dict[str, Any] = {**endpoint.described, **({"security": []} if is_public else {})}
    if endpoint.body is not None:
        extra["requestBody"] = openapi.request_body(
            endpoint.body, is_required=not endpoint.may_be_empty
        )
    if endpoint.parameters:
        extra["parameters"] = [openapi.query_parameter(name) for name in endpoint.parameters]
    if endpoint.query is not None:
        extra["parameters"] = openapi.parameters_of(endpoint.query)
    responses = openapi.responses_of(endpoint.answers, tuple(sorted({*errors, 421})))
    if endpoint.events is not None:
        stream = openapi.event_stream(endpoint.events)
        whole = responses.get(200, stream)  # some answer either way, as they're asked
        responses = {**responses, 200: {**whole, "content": stream["content"] | whole["content"]}}
    app.add_api_route(
        endpoint.path,
        endpoint.handler,
        methods=[endpoint.method],
        # The first that is listed, as FastAPI shows it; one without answers only refuses.
        status_code=int(next(iter(responses))),
        response_class=Response,
        response_model=None,
        responses=responses,
        operation_id=endpoint.handler.__name__,
        openapi_extra=extra,
        tags=[openapi.tag_of(endpoint.path)],
    )
    return cast(Route, app.router.routes.pop())


async def _get_document(request: Request) -> Response:
    return Response(document(), media_type="application/json")


@functools.cache  # made when somebody first asks: it takes as long as all else of a start
def document() -> bytes:
    return openapi.document(
        described(),
        endpoints(),
        {
            MESSAGES_PATH: {
                "post": {
                    "operationId": "post_message",
                    "summary": "Post Message",
                    "tags": ["conversations"],
                    "description": "Say something in a session; the answer comes on its own.",
                    "parameters": [
                        {
                            "name": "key",
                            "in": "path",
                            "required": True,
                            "description": "userId:agentId:threadId",
                            "schema": openapi.schema_of(OwnKey),
                            "example": examples_http.SESSION,
                        },
                    ],
                    "requestBody": openapi.request_body(PostMessage),
                    "responses": {
                        str(status): response
                        for status, response in openapi.responses_of(
                            {202: Accepted}, (401, *_WRITE, 415, 421, 429)
                        ).items()
                    },
                }
            },
            "/openapi.json": {
                "get": {
                    "operationId": "openapi",
                    "summary": "This document",
                    "tags": ["installation"],
                    "security": [],
                    "responses": {
                        "200": {
                            "description": "OpenAPI 3.1",
                            "content": {"application/json": {"schema": {"type": "object"}}},
                        }
                    },
                }
            },
        },
    )


def _hidden() -> dict[str, list[str]]:
    """Return the methods that a path doesn't take, and a path with a parameter there would."""
    taken: dict[str, set[str]] = {}
    for one in endpoints():
        taken.setdefault(one.path, set()).add(one.method)
    patterns = {path: compile_path(path)[0] for path in taken if "{" in path}
    hidden = {
        path: set().union(*(taken[p] for p, regex in patterns.items() if regex.match(path)))
        for path in taken
        if path not in patterns
    }
    return {path: sorted(more - taken[path]) for path, more in hidden.items() if more - taken[path]}
