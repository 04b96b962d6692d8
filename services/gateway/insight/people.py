"""/api/tokens: who has a token, and making and ending one, for admins (ADR 39).

What a token is, nobody is told twice: it's in the answer to the request that makes it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec
import structlog
from fastapi import Depends, Path, Response

from vigil.contracts import Instant
from vigil.errors import InvalidInput
from vigil.settings import tokens
from vigil.settings.tokens import Token
from vigil.subjects import PartText
from vigil.texts.glyphs import is_printable

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, RequestBody

log = structlog.get_logger("vigil.gateway")

ID_LENGTH: Final = 12
"""Of the hash of a token: enough to name one."""
NAME_LENGTH_MAX: Final = 60
DAYS_MAX: Final = 3_660
ID_PATTERN: Final = f"^[0-9a-f]{{{ID_LENGTH},64}}$"


class TokenBody(RequestBody, frozen=True, kw_only=True):
    """A new token."""

    user: PartText
    """Whom it speaks for."""
    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)] = ""
    """For a person to tell tokens apart."""
    is_admin: bool = False
    expires_days: Annotated[float, msgspec.Meta(ge=0.001, le=DAYS_MAX)] | None = None
    """Days until it ends; absent: it's good until it is ended."""


class TokenView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A token that counts, without what it is."""

    id: str
    """How its hash begins."""
    user: str
    name: str
    is_admin: bool
    is_link: bool
    """Whether it's the link of a calendar, good for that alone."""
    created_at: Instant
    expires_at: Instant | None


class TokenMade(TokenView, frozen=True, kw_only=True, omit_defaults=False):
    """A token that was just made."""

    token: str
    """What it is. It's stored nowhere, and never told again."""
    timezone: str
    """By which the clocks of its person go, as long as they set no other."""


class TokenList(Answer, frozen=True, kw_only=True):
    """By user, the newest first."""

    tokens: tuple[TokenView, ...]


async def list_tokens(edge: Shared, _: Admin) -> Response:
    """List everybody's tokens that count. Needs an admin token."""
    now = edge.clock.now()
    found = [_view(id_, token) for id_, token in edge.tokens.live(now).items()]
    found.sort(key=lambda one: (one.user, -one.created_at.timestamp()))
    return Json(TokenList(tokens=tuple(found)))


async def make_token(
    edge: Shared, caller: Admin, wanted: Annotated[TokenBody, Depends(body_of(TokenBody))]
) -> Response:
    """Make a token, which this answer alone tells. Needs an admin token."""
    if edge.switches.is_erasing(wanted.user):
        raise erasing()
    if not is_printable(wanted.name):
        raise InvalidInput("name", "must be one line that can be seen")
    now, days = edge.clock.now(), wanted.expires_days
    facts: dict[str, Any] = {
        "user": wanted.user,
        "is_admin": wanted.is_admin,
        "name": wanted.name,
        "expires_at": None if days is None else now + timedelta(days=days),
    }
    text = await tokens.create(edge.bus, now=now, **facts)
    id_ = tokens.token_id_of(text)
    log.info("token made", action="gateway.tokens", by=caller.user, user=wanted.user, id=id_[:8])
    made = TokenMade(
        id=id_[:ID_LENGTH],
        created_at=now,
        is_link=False,
        token=text,
        timezone=edge.zone_of(wanted.user),
        **facts,
    )
    return Json(made, 201)


async def end_token(
    edge: Shared,
    caller: Admin,
    id_: Annotated[
        str,
        Path(
            alias="id",
            description=f"How the hash of the token begins: {ID_LENGTH} digits or more",
            json_schema_extra={"pattern": ID_PATTERN},
        ),
    ],
) -> Response:
    """End a token, and all that was signed in with it, at once. Needs an admin token."""
    now = edge.clock.now()
    found = [one for one in edge.tokens.live(now).items() if one[0].startswith(id_)]
    if len(id_) < ID_LENGTH or len(found) != 1:
        raise Problem(404, "there is no such token")
    ((whole, token),) = found
    await tokens.revoke(edge.bus, whole)
    log.info("token ended", action="gateway.tokens", by=caller.user, user=token.user, id=whole[:8])
    return Json(_view(whole, token))


def _view(id_: str, token: Token) -> TokenView:
    return TokenView(
        id=id_[:ID_LENGTH],
        user=token.user,
        name=token.name,
        is_admin=token.is_admin,
        is_link=token.is_link,
        created_at=token.created_at,
        expires_at=token.expires_at,
    )


_PATH: Final = "/api/tokens"
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_tokens, {200: TokenList}, (403,)),
    Endpoint("POST", _PATH, make_token, {201: TokenMade}, (403, 413, 422, 503), TokenBody),
    Endpoint("DELETE", f"{_PATH}/{{id}}", end_token, {200: TokenView}, (403, 404, 422, 503)),
)
