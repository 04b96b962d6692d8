"""POST /hooks/{name}: webhooks of other systems, into the session that the configuration names.

There is no token: the signature is the proof (RELIABILITY S7). What came in once under an id is
stored once, also if it's sent again later; the bucket IDEMPOTENCY knows it for a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from fastapi import Request, Response

from vigil.contracts import Instant
from vigil.errors import InvalidInput

from ..edge import Edge
from ..http import body
from ..http.door import HOOKS, sign_in
from ..http.problem import Problem, too_many
from ..http.routes import Json, Shared
from ..sessions.messages import parent_of
from . import endpoint as events
from . import signatures
from .cloud_events import Limits, Told, of_text
from .signatures import Signed

log = structlog.get_logger("vigil.gateway")

PATH: Final = f"{HOOKS}{{name}}"
KIND_LENGTH_MAX: Final = 256


async def post_hook(request: Request, edge: Shared, name: str) -> Response:
    """Take a signed webhook in; the signature is the proof, no token is needed."""
    hook = edge.hooks.get(name)
    if hook is None:
        raise Problem(404, "there is no such hook")
    scope = request.scope
    data = await body.read(scope, request.receive, edge.config.body_bytes_max)
    signed = signatures.verify(
        hook.scheme, hook.secrets, _single(scope["headers"]), data, edge.clock.now()
    )
    if signed is None:
        raise _refusal(edge, name, scope["client"])
    sign_in(scope, f"{HOOKS}{name}")
    if wait_s := edge.limiter.take(f"{HOOKS}{name}", edge.clock.monotonic()):
        raise too_many("this hook gets too many requests", wait_s)
    accepted = await events.take(
        edge,
        hook.session,
        hook.session.user,
        _told(signed, data, events.limits_of(edge)),
        source=f"hook:{name}",
        parent=parent_of(scope),
    )
    return Json(accepted, 202)


def _single(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return the headers that came once: of two signatures or ids neither may be picked."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    counts = Counter(name for name, _ in pairs)
    return {name: value for name, value in pairs if counts[name] == 1}


def _refusal(edge: Edge, name: str, client: Any) -> Problem:
    """Tell a caller that they proved nothing, and slow down one who tries again and again."""
    address = client[0] if client else ""
    if wait_s := edge.failures.take(address, edge.clock.monotonic()):
        return too_many("too many requests with bad signatures", wait_s)
    log.warning("bad signature", action="gateway.hook", hook=name, address=address)
    return Problem(401, "the request is not signed as this hook expects")


class _Message(msgspec.Struct):
    """What Standard Webhooks recommends to have in a body."""

    type: str = ""
    timestamp: Any = None


def _instant(timestamp: Any) -> datetime | None:
    """Return what the sender says when it was; None if that can't be told from it.

    >>> _instant("2026-11-20T09:00:00"), _instant(1795165200), _instant(None)
    (None, None, None)
    """
    try:
        return msgspec.convert(timestamp, Instant) if isinstance(timestamp, str) else None
    except msgspec.ValidationError:
        return None


def _told(signed: Signed, data: bytes, limits: Limits) -> Told:
    kind, occurred_at = signed.kind, None
    if not kind:
        try:
            message = msgspec.json.decode(data, type=_Message)
            kind, occurred_at = message.type[:KIND_LENGTH_MAX], _instant(message.timestamp)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            kind = ""  # another form of body: it's told as it is
    try:
        return of_text(signed.id, kind, data, occurred_at, limits)
    except InvalidInput:
        log.warning("unusable body", action="gateway.hook_body", kind=kind)
        raise
