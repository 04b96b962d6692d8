"""The OpenAPI document: FastAPI knows the parameters, msgspec the bodies; this joins them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from vigil.fields.structs import components_of
from vigil.sdk.formats.cloud_event import CloudEvent

from ..endpoint import Endpoint
from ..events.cloud_events import STRUCTURED
from ..http.problem import MEDIA_TYPE, ProblemBody
from ..http.wire import (
    ClientFrame,
    CursorValue,
    KeyedBy,
    OwnKey,
    PostMessage,
    ServerFrame,
)
from . import examples_http, limits

REF: Final = "#/components/schemas/{name}"
_NAMED_ELSEWHERE: Final[tuple[Any, ...]] = (
    *(ClientFrame, CloudEvent, PostMessage, ProblemBody, ServerFrame),
)
"""What the document refers to beside the bodies and answers of the table."""
DESCRIPTION: Final = """\
Talk to agents that come back by themselves. Every call but the public ones carries a token:
`Authorization: Bearer pat_…`. Errors are problem+json (RFC 9457).
"""
TAGS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "conversations": (
        "Say something, read what was said and why, over HTTP and a WebSocket",
        (
            *("/api/chat", "/api/sessions", "/api/ws", "/api/tickets", "/api/why"),
            *("/api/attachments", "/v1/", "/a2a/", "/.well-known/"),
        ),
    ),
    "events": (
        "What happens elsewhere comes in, what happens here goes out",
        ("/api/events", "/hooks/", "/channels/", "/api/signals"),
    ),
    "memory": (
        "What agents know, how people like things, and the indexes",
        ("/api/memories", "/api/preferences", "/api/bulletin", "/api/maintenance", "/mcp"),
    ),
    "tools": (
        "What agents may do, and what a person allows",
        ("/api/tools", "/api/servers", "/api/approvals", "/api/grants", "/api/trust"),
    ),
    "jobs": (
        "Work that runs by itself",
        (
            "/api/jobs",
            "/api/skills",
            "/api/tasks",
            "/api/goals",
            "/api/actions",
            "/api/cron",
            "/api/facts",
            "/api/slots",
            "/api/calendar-links",
            "/calendar/",
        ),
    ),
    "installation": (
        "Who you are, what runs, the pause, dead letters, health, these documents",
        ("/api/me", "/api/person", "/api/status", "/api/pause", "/api/dead", "/api/cost"),
    ),
}
"""name -> (what it is about, how its paths begin)"""
_SOCKET_PARAMETERS: Final[dict[str, tuple[Any, str]]] = {
    "session": (OwnKey, "userId:agentId:threadId"),
    "client": (KeyedBy, "A name of yours for this client, which what it got is kept under"),
    "cursor": (CursorValue, "Begin after this; wins over what is kept"),
    "ticket": (str, "Of POST /api/tickets, in place of a token"),
}
_PHRASES: Final = {
    200: "Done", 201: "Made", 202: "Stored; what comes of it follows on the session",
    204: "Nothing in it to store",
    400: "Malformed", 401: "No valid token", 403: "Not allowed", 404: "No such thing",
    406: "Accept leaves out what would be answered",
    409: "Not as things are now", 410: "A conversation that was deleted, or is being deleted",
    412: "Changed since it was read",
    413: "Too large", 415: "A form that isn't taken", 421: "Unknown Host",
    422: "Input that can't be used", 426: "A WebSocket",
    429: "Too many; see Retry-After", 503: "Not now; see Retry-After", 504: "Not within the time",
}  # fmt: skip


def _components(endpoints: Iterable[Endpoint]) -> list[Any]:
    """Return the structs of all bodies, answers and events, each once, by name."""
    kinds = {
        kind
        for one in endpoints
        for kind in (*one.answers.values(), one.body, one.events)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }
    return [*_NAMED_ELSEWHERE, *sorted(kinds, key=lambda kind: kind.__name__)]


def json_of(kind: type) -> dict[str, Any]:
    """Return the content of a body that is a `kind` in JSON, or text."""
    if issubclass(kind, str):
        return {getattr(kind, "media_type", "text/plain"): {"schema": {"type": "string"}}}
    if kind is bytes:
        return {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    ref = REF.format(name=kind.__name__)
    return {"application/json": {"schema": {"$ref": ref}}}


def problem_response(status: int) -> dict[str, Any]:
    """Return the description of an error answer."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="ProblemBody")}}}
    return {"description": _PHRASES[status], "content": content}


def responses_of(answers: dict[int, type | None], errors: tuple[int, ...]) -> dict[int | str, Any]:
    """Return the answers of an operation, good ones with their struct."""
    good: dict[int | str, Any] = {
        status: {"description": _PHRASES[status]} | ({"content": json_of(kind)} if kind else {})
        for status, kind in answers.items()
    }
    return good | {status: problem_response(status) for status in errors}


def event_stream(kind: type) -> dict[str, Any]:
    """Return the description of Server-Sent Events whose data is a `kind` in JSON."""
    schema = {"type": "string", "contentMediaType": "application/json"}
    content = schema | {"contentSchema": {"$ref": REF.format(name=kind.__name__)}}
    return {
        "description": "Events, until either side ends",
        "content": {"text/event-stream": {"schema": content}},
    }


def request_body(
    kind: type, media_type: str = "application/json", *, is_required: bool = True
) -> dict[str, Any]:
    """Return the description of a body that must be a `kind`, with examples that are accepted."""
    (content,) = json_of(kind).values()
    shown = examples_http.BODIES.get(kind.__name__)
    if shown:
        content |= {"examples": {name: {"value": value} for name, value in shown.items()}}
    return {"required": is_required, "content": {media_type: content}}


def _headers(shown: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Describe headers of which one form of the request needs some, and the other none."""
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": told,
            "schema": {"type": "string"},
            "example": example,
        }
        for name, (told, example) in shown.items()
    ]


def event_in() -> dict[str, Any]:
    """Return what `POST /api/events` takes: an event in JSON, or its data with ce-* headers."""
    told = {
        "ce-specversion": "Binary mode: the attributes are headers, the body is the data",
        "ce-id": "With the source the event's name: repeating it is harmless for a day",
        "ce-source": "Who reports it",
        "ce-type": "What happened",
        "ce-subject": "The session that it's for: userId:agentId:threadId",
        "ce-time": "When; RFC 3339",
    }
    headers = {name: (told[name], value) for name, value in examples_http.EVENT_HEADERS.items()}
    body = request_body(CloudEvent, STRUCTURED, is_required=False)
    body["description"] = "An event in JSON; in binary mode any text in UTF-8, or nothing"
    body["content"]["*/*"] = {
        "schema": {"type": "string"},
        "examples": {"data alone": {"value": examples_http.EVENT_DATA}},
    }
    return {"parameters": _headers(headers), "requestBody": body}


def hook_in() -> dict[str, Any]:
    """Return what `POST /hooks/{name}` takes: any text, signed as the hook's `scheme` says."""
    headers = {
        "webhook-id": ("Standard Webhooks: the message's name", "msg_7"),
        "webhook-timestamp": (
            "Standard Webhooks: seconds since 1970, at most 5 min off",
            "1795338000",
        ),
        "webhook-signature": (
            "Standard Webhooks: v1, and HMAC-SHA256 of id.timestamp.body, base64",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
        "stripe-signature": (
            "Stripe: seconds since 1970, and HMAC-SHA256 of time.body, hex",
            "t=1795338000,v1=" + 8 * "0123abcd",
        ),
        "x-github-delivery": (
            "GitHub: the delivery's name",
            "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        ),
        "x-github-event": ("GitHub: what happened", "push"),
        "x-hub-signature-256": (
            "GitHub: sha256= and HMAC-SHA256 of the body, hex",
            "sha256=" + 8 * "0123abcd",
        ),
    }
    body = {
        "required": True,
        "description": "Text in UTF-8, as it was signed. Of JSON, `type` and `timestamp` are read.",
        "content": {"*/*": {"schema": {"type": "string"}}},
    }
    return {"parameters": _headers(headers), "requestBody": body}


def channel_in() -> dict[str, Any]:
    """Return what `POST /channels/{name}` takes: what the kind of channel says."""
    body = {
        "required": True,
        "description": "What the channel's kind takes, with its proof of who sends it.",
        "content": {"*/*": {"schema": {"type": "string"}}},
    }
    return {"requestBody": body}


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the schema of a type that is no struct."""
    return msgspec.json.schema(kind)


def query_parameter(name: str) -> dict[str, Any]:
    """Return the description of a parameter of the WebSocket's URL."""
    schema, description = _SOCKET_PARAMETERS[name]
    return {
        "name": name,
        "in": "query",
        "required": name == "session",
        "description": description,
        "schema": schema_of(schema),
    }


def tag_of(path: str) -> str:
    """Return the group of an operation, by its path.

    >>> tag_of("/api/memories/{id}"), tag_of("/readyz")
    ('memory', 'installation')
    """
    return next(
        (tag for tag, (_, starts) in TAGS.items() if path.startswith(starts)), "installation"
    )


def parameters_of(kind: type) -> list[dict[str, Any]]:
    """Return the query parameters that the fields of the struct `kind` are."""
    (schema,), _ = components_of([kind], "{name}")
    _, components = components_of([kind], REF)
    name = schema["$ref"]
    properties = components[name]["properties"]
    for field, more in limits.QUERIES.get(name, {}).items():
        properties[field] |= more
    return [
        {"name": name, "in": "query", "required": False, "schema": one}
        for name, one in properties.items()
    ]


_UNSAID: Final = "HTTPValidationError"


def _asked(operations: Iterable[dict[str, Any]]) -> set[str]:
    """Return the names of the schemas of bodies."""
    contents = (one.get("requestBody", {}).get("content", {}) for one in operations)
    refs = {kind["schema"].get("$ref", "") for content in contents for kind in content.values()}
    return {ref.rpartition("/")[2] for ref in refs if ref}


def _say_plainly(schema: Any) -> None:
    """Say in place what generators of clients need said: that an array is of anything, and that
    the one value of a field is a boolean. Without it some leave out whatever has such a field.

    >>> schema = {"type": "array", "anyOf": [{"enum": [False]}]}
    >>> _say_plainly(schema)
    >>> schema
    {'type': 'array', 'anyOf': [{'type': 'boolean'}], 'items': {}}
    """
    if isinstance(schema, list):
        for one in schema:
            _say_plainly(one)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key not in ("default", "example", "examples", "const"):
            _say_plainly(value)
    kind = schema.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and not (
        schema.keys() & {"items", "prefixItems"}
    ):
        schema["items"] = {}
    match schema.get("enum"):
        case [bool()]:
            schema["type"] = "boolean"
            del schema["enum"]


def document(app: FastAPI, endpoints: Iterable[Endpoint], extra_paths: dict[str, Any]) -> bytes:
    """Return the whole document; `extra_paths` are routes that FastAPI doesn't know."""
    made = get_openapi(
        title="Vigil", version=app.version, description=DESCRIPTION, routes=app.routes
    )
    paths = made["paths"] | extra_paths
    _, schemas = components_of(_components(endpoints), REF)
    operations = [one for methods in paths.values() for one in methods.values()]
    limits.apply(schemas, _asked(operations))
    _say_plainly(schemas)
    for operation in operations:
        # FastAPI's own, of whatever has a parameter and doesn't say that it can be refused.
        if _UNSAID in str(operation["responses"].get("422", "")):
            del operation["responses"]["422"]
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                limits.without_nul(parameter["schema"])
    return msgspec.json.encode(
        made
        | {
            # The gateway that this comes from: it may have other names than it knows.
            "servers": [{"url": "/", "description": "This gateway"}],
            "tags": [{"name": name, "description": told} for name, (told, _) in TAGS.items()],
            "paths": dict(sorted(paths.items())),
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}],
        }
    )
