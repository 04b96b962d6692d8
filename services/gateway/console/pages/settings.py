"""Settings: what holds for the reader; for admins who has a token, and which models there are."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ...http.wire import Status
from ...insight.people import TokenList
from ..visit import Visit

FIELDS: Final = ("timezone", "language", "quiet_hours", "channel", "digest_at")
TOKENS_MAX: Final = 200


async def show(visit: Visit) -> dict[str, Any]:
    held = visit.person
    shown = {"values": {name: getattr(held, name) for name in FIELDS}, "own": held.own}
    if not visit.reader.is_admin:
        return shown | {"tokens": None, "model": None}
    tokens, status = await asyncio.gather(
        visit.api.get(TokenList, "/api/tokens"), visit.api.get(Status, "/api/status")
    )
    return shown | {"tokens": tokens.tokens[:TOKENS_MAX], "model": status.model}


async def act(visit: Visit) -> str:
    """Set what differs from what was shown. Raises: Problem, 412: it was changed since."""
    await visit.begin()
    given = {name: visit.wanted(name).strip() for name in FIELDS}
    change = {name: one for name, one in given.items() if one != getattr(visit.person, name)}
    revision = visit.number("revision")
    if change:
        await visit.api.send("PATCH", "/api/person", change, revision=revision)
    return "/settings"
