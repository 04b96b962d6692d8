"""POST /hooks/{name}: webhooks of other systems, into the session that the configuration names.

There is no token: the signature is the proof (RELIABILITY S7). What came in once under an id is
stored once, also if it's sent again later; the bucket IDEMPOTENCY knows it for a day.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from fastapi import Request, Response

from vigil.contracts import Instant
from vigil.errors import InvalidInput

from ..callers import Shared
from ..door import HOOKS
from ..http import body
from ..http.json import Json
from ..http.problem import Problem
from ..sessions.messages import parent_of
from ..state import signatures
from ..state.signatures import Signed
from . import endpoint as events
from .cloud_events import EventLimits, OutsideEvent, of_text
from .entrance import let_in, note_failure, single
from .hook_facts import take_facts

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
        hook.scheme, hook.secrets, single(scope["headers"]), data, edge.clock.now()
    )
    if signed is None:
        address = note_failure(edge, scope["client"])
        log.warning("bad signature", action="gateway.hook", hook=name, address=address)
        raise Problem(401, "the request is not signed as this hook expects")
    let_in(edge, scope, f"{HOOKS}{name}", "hook")
    accepted = await events.take(
        edge,
        hook.session,
        hook.session.user,
        _read(signed, data, events.limits_of(edge)),
        source=f"hook:{name}",
        is_trusted=hook.is_trusted,
        parent=parent_of(scope),
    )
    await take_facts(edge, hook, accepted, data)
    return Json(accepted, 202)


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


def _read(signed: Signed, data: bytes, limits: EventLimits) -> OutsideEvent:
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
