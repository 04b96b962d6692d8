"""POST /api/sessions/{key}/messages: the busiest way in, so it's a bare ASGI application."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vigil.observe import trace
from vigil.settings.tokens import Principal

from ..access import PRINCIPAL, own_session
from ..attachments import keep
from ..http import body
from ..http.wire import PostMessage
from ..state.edge import Edge

_decoder: Final = msgspec.json.Decoder(PostMessage)
_encode: Final = msgspec.json.Encoder().encode
_TRACE: Final = trace.HEADER.encode()


def parent_of(scope: Any) -> str | None:
    """Return the caller's traceparent, as sent."""
    for name, value in scope["headers"]:
        if name == _TRACE:
            return str(value.decode("latin-1"))
    return None


class Messages:
    """The endpoint."""

    path = "/api/sessions/{key}/messages"

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        edge = self._edge
        principal: Principal = scope[PRINCIPAL]
        session = own_session(scope["path_params"]["key"], principal)
        data = await body.read(scope, receive, edge.config.body_bytes_max)
        message = body.decode(data, _decoder, edge.config.json_depth_max)
        accepted = await keep.accepted(
            edge,
            principal.user,
            session,
            message.attachments,
            lambda files: edge.intake.accept(
                principal.user,
                session,
                message.text,
                key=message.idempotency_key,
                attachments=files,
                reply_to=message.reply_to,
                parent=parent_of(scope),
            ),
        )
        answer = _encode(accepted)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(answer)),
        ]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})
