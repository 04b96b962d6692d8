"""Settings: what holds for the reader; for admins who has a token, and which models there are."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from ...http.wire import Status
from ...insight.people import TokenList, TokenMade
from ..second_thoughts import Confirmation
from ..shapes.lists.leaf import leaf_of
from ..visit import Visit, segment_of

FIELDS: Final = ("timezone", "language", "quiet_hours", "channel", "digest_at")
TOKENS_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    held = visit.person
    shown = {"values": {name: getattr(held, name) for name in FIELDS}, "own": held.own}
    if not visit.reader.is_admin:
        return shown | {"tokens": None, "model": None, "made": None}
    tokens, status = await asyncio.gather(
        visit.api.get(TokenList, "/api/tokens"), visit.api.get(Status, "/api/status")
    )
    listed = leaf_of(visit.query, "tokens", TOKENS_MAX).part(tokens.tokens)
    return shown | {"tokens": listed, "model": status.model, "made": None}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a token is ended."""
    if visit.wanted("do") != "end" or not visit.reader.is_admin:
        return None
    tokens = (await visit.api.get(TokenList, "/api/tokens")).tokens
    of = next((one.user for one in tokens if one.id == visit.wanted("token")), None)
    if of is None:
        return None
    return Confirmation(
        title="End this token?",
        text=f"Programs and browsers of {of} that use it are let in no more. It can't be made "
        "anew, but another can.",
        yes="End it",
    )


async def act(visit: Visit) -> str | dict[str, Any]:
    """Set what differs from what was shown; make or end a token. Raises: Problem, 412: what holds
    was changed since; 403: tokens are an admin's."""
    match visit.wanted("do"):
        case "make":
            return {"made": await _made(visit)}
        case "end":
            await visit.api.send("DELETE", f"/api/tokens/{segment_of(visit.wanted('token'))}")
        case _:
            await _set(visit)
    return "/settings"


async def _made(visit: Visit) -> TokenMade:
    body: dict[str, Any] = {
        "user": visit.wanted("user").strip(),
        "name": visit.wanted("name").strip(),
        "is_admin": visit.form.get("admin") == "on",
    }
    if visit.wanted("days").strip():
        body["expires_days"] = visit.number("days")
    return msgspec.convert(await visit.api.send("POST", "/api/tokens", body), TokenMade)


async def _set(visit: Visit) -> None:
    await visit.begin()
    given = {name: visit.wanted(name).strip() for name in FIELDS}
    change = {name: one for name, one in given.items() if one != getattr(visit.person, name)}
    revision = visit.number("revision")
    if change:
        await visit.api.send("PATCH", "/api/person", change, revision=revision)
