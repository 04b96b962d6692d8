"""/mcp: a caller's memory for programs that speak the Model Context Protocol.

The door has let the caller in as on any other path, by a token, a Host and a rate; the tools act
for that principal. Each request stands for itself (no sessions), so any replica may answer it. The
SDK is imported with the first request, in a thread: it takes more than a second.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fastapi import Request, Response

from vigil.memory import wire
from vigil.memory.behalf import Acting
from vigil.settings.tokens import Principal

from ..access import PRINCIPAL
from ..callers import Caller, Shared
from ..http import body
from ..http.problem import of_error
from ..http.query import query_of
from ..state.edge import Edge
from .questions import Remembering, scope_of

_MALFORMED: Final = 400
_INVALID_REQUEST: Final = -32600
"""Of JSON-RPC."""
_WHOSE: Final = "vigil.whose"
"""Where whose memory it is about is in the ASGI scope."""


async def post_mcp(request: Request, edge: Shared, caller: Caller) -> Response:
    """Call a tool of the memory: JSON-RPC of the Model Context Protocol, without sessions.

    `agentId` chooses the agent, and `userId`, for admins, the user.
    """
    whose = query_of(request.scope["query_string"], wire.Whose)
    scope_of(edge, caller, whose.user_id, whose.agent_id)  # before anything is read
    limits = edge.config.body_bytes_max, edge.config.json_depth_max
    data = await body.read_shallow(request.scope, request.receive, *limits)
    request.scope[_WHOSE] = whose
    return _Answer(edge, data)


class _Answer(Response):
    """Has the SDK answer a request whose body was read already."""

    def __init__(self, edge: Edge, data: bytes) -> None:
        super().__init__()
        self._edge = edge
        self._data = data

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        replay = body.replayed(self._data, receive)
        manager = await self._edge.mcp.started(lambda: build(self._edge))
        await manager.handle_request(scope, replay, _Plain(send))


class _Plain:
    """Passes an answer on; a refusal that prints what a validator of the SDK thinks is put into
    words of ours."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self._start: Any = None
        self._body = b""

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == _MALFORMED:
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._refuse()

    async def _refuse(self) -> None:
        body = in_our_words(self._body)
        length = (b"content-length", b"%d" % len(body))
        told = length, (b"content-type", b"application/json")
        names = [name for name, _ in told]
        headers = [one for one in self._start["headers"] if one[0].lower() not in names]
        await self._send({**self._start, "headers": [*headers, *told]})
        await self._send({"type": "http.response.body", "body": body})


def in_our_words(refusal: bytes) -> bytes:
    """Return a refusal of the SDK without what its validators say.

    >>> in_our_words(b'{"error":{"code":-32602,"message":"Validation error: 14 errors for ..."}}')
    b'{"error":{"code":-32602,"message":"This is no message of the Model Context Protocol"}}'
    >>> in_our_words(b'{"error":{"code":-32600,"message":"Bad Request: Unsupported"}}')
    b'{"error":{"code":-32600,"message":"Bad Request: Unsupported"}}'
    """
    try:
        told = msgspec.json.decode(refusal)
    except msgspec.DecodeError:  # of its layer for security
        text = refusal.decode("utf-8", "replace")
        error = {"code": _INVALID_REQUEST, "message": text}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    if told["error"]["message"].startswith(("Validation error", "Parse error")):
        told["error"]["message"] = "This is no message of the Model Context Protocol"
    return msgspec.json.encode(told)


def build(edge: Edge) -> Any:
    """Return the SDK's side of it. Takes more than a second the first time."""
    from vigil.memory import mcp_server

    def find(context: Any) -> Acting:
        scope = context.request.scope
        principal: Principal = scope[PRINCIPAL]
        return Acting(Remembering(edge, principal), scope[_WHOSE])

    def explain(error: Exception) -> str | None:
        problem = of_error(error)
        return None if problem is None else problem.detail

    server = mcp_server.build(find, explain)
    return mcp_server.over_http(server, edge.config.body_bytes_max)
