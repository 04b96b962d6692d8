"""The OpenAPI document: FastAPI knows the parameters, msgspec the bodies; this joins them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from vigil.cloud_event import CloudEvent
from vigil.contracts import Signal
from vigil.memory.wire import (
    AssociateBody,
    AssociatedMemories,
    ForgottenMemories,
    MaintainBody,
    MaintenanceDone,
    MemoryDetail,
    MemoryGraph,
    MemoryPage,
    MemoryStats,
    RebuildBody,
    RebuildStarted,
    SaveBody,
    SavedMemory,
    UndoBody,
    UndoneSource,
)

from .asyncapi import AsyncApi
from .jobs import JobAccepted, JobBody, JobChange, JobDetail, JobList, SkillList
from .letters import DeadLetterDetail, DeadLetterPage
from .problem import MEDIA_TYPE, ProblemBody
from .tools import ToolList
from .verdicts import ApprovalList, ApprovalView, Decide
from .why.answer import WhyAnswer
from .wire import (
    Accepted,
    Alive,
    ChatAnswer,
    ChatPending,
    ChatRequest,
    ClientFrame,
    JsonRpc,
    Me,
    PauseState,
    PostMessage,
    Readiness,
    ServerFrame,
    SessionList,
    Status,
    Ticket,
    TicketRequest,
    Timeline,
    TimerList,
    Transcript,
)

REF: Final = "#/components/schemas/{name}"
COMPONENTS: Final[tuple[Any, ...]] = (
    Accepted, Alive, ApprovalList, ApprovalView, AssociateBody, AssociatedMemories, AsyncApi,
    ChatAnswer, ChatPending, ChatRequest, ClientFrame, CloudEvent, DeadLetterDetail, DeadLetterPage,
    Decide, ForgottenMemories,
    JobAccepted, JobBody, JobChange, JobDetail, JobList, JsonRpc, MaintainBody, MaintenanceDone,
    Me, MemoryDetail, MemoryGraph, MemoryPage, MemoryStats,
    PauseState, PostMessage, ProblemBody, Readiness, RebuildBody, RebuildStarted, SaveBody,
    SavedMemory, ServerFrame, SessionList, Signal, SkillList, Status, Ticket, TicketRequest,
    Timeline, TimerList, ToolList, Transcript, UndoBody, UndoneSource, WhyAnswer,
)  # fmt: skip
DESCRIPTION: Final = """\
Talk to agents that come back by themselves. Every call but the public ones carries a token:
`Authorization: Bearer pat_…`. Errors are problem+json (RFC 9457).
"""
_PHRASES: Final = {
    200: "Done", 201: "Made", 202: "Stored; what comes of it follows on the session",
    400: "Malformed", 401: "No valid token", 403: "Not allowed", 404: "No such thing",
    409: "Not as things are now",
    413: "Too large", 415: "A form that isn't taken", 421: "Unknown Host",
    422: "Input that can't be used", 426: "A WebSocket",
    429: "Too many; see Retry-After", 503: "Not now; see Retry-After",
}  # fmt: skip


def json_of(kind: type) -> dict[str, Any]:
    """Return the content of a body that is a `kind` in JSON, or text."""
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    ref = REF.format(name=kind.__name__)
    return {"application/json": {"schema": {"$ref": ref}}}


def problem_response(status: int) -> dict[str, Any]:
    """Return the description of an error answer."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="ProblemBody")}}}
    return {"description": _PHRASES[status], "content": content}


def responses_of(answers: dict[int, type], errors: tuple[int, ...]) -> dict[int | str, Any]:
    """Return the answers of an operation, good ones with their struct."""
    good: dict[int | str, Any] = {
        status: {"description": _PHRASES[status], "content": json_of(kind)}
        for status, kind in answers.items()
    }
    return good | {status: problem_response(status) for status in errors}


def event_stream(kind: type) -> dict[str, Any]:
    """Return the description of Server-Sent Events whose data is a `kind` in JSON."""
    schema = {"type": "string", "contentMediaType": "application/json"}
    content = schema | {"contentSchema": {"$ref": REF.format(name=kind.__name__)}}
    return {"description": "Events, until either side ends",
            "content": {"text/event-stream": {"schema": content}}}  # fmt: skip


def request_body(kind: type, media_type: str = "application/json") -> dict[str, Any]:
    """Return the description of a body that must be a `kind`."""
    (schema,) = json_of(kind).values()
    return {"required": True, "content": {media_type: schema}}


def parameters_of(kind: type) -> list[dict[str, Any]]:
    """Return the query parameters that the fields of the struct `kind` are."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="{name}")
    _, components = msgspec.json.schema_components([kind], ref_template=REF)
    properties = components[schema["$ref"]]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": one}
        for name, one in properties.items()
    ]


def document(app: FastAPI, extra_paths: dict[str, Any]) -> bytes:
    """Return the whole document; `extra_paths` are routes that FastAPI doesn't know."""
    made = get_openapi(
        title="Vigil", version=app.version, description=DESCRIPTION, routes=app.routes
    )  # fmt: skip
    paths = made["paths"] | extra_paths
    _, schemas = msgspec.json.schema_components(COMPONENTS, ref_template=REF)
    return msgspec.json.encode(
        made
        | {
            "paths": dict(sorted(paths.items())),
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}],
        }
    )
