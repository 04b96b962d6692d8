"""GET /api/tokens: who has a token, for admins. What a token is, nobody is told twice."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from vigil.contracts import Instant

from ..endpoint import Endpoint
from ..http.routes import Admin, Json, Shared
from ..http.wire import Answer

ID_LENGTH: Final = 12
"""Of the hash of a token: enough to name one to `vigil token revoke`."""


class TokenView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A token that counts, without what it is."""

    id: str
    """How its hash begins."""
    user: str
    name: str
    is_admin: bool
    created_at: Instant
    expires_at: Instant | None


class TokenList(Answer, frozen=True, kw_only=True):
    """By user, the newest first."""

    tokens: tuple[TokenView, ...]


async def list_tokens(edge: Shared, _: Admin) -> Response:
    """List everybody's tokens that count. Needs an admin token."""
    now = edge.clock.now()
    found = [
        TokenView(
            id=id_[:ID_LENGTH],
            user=token.user,
            name=token.name,
            is_admin=token.is_admin,
            created_at=token.created_at,
            expires_at=token.expires_at,
        )
        for id_, token in edge.tokens.live(now).items()
    ]
    found.sort(key=lambda one: (one.user, -one.created_at.timestamp()))
    return Json(TokenList(tokens=tuple(found)))


ENDPOINTS: Final = (Endpoint("GET", "/api/tokens", list_tokens, {200: TokenList}, (403,)),)
