"""/api/bulletin: what an agent's conversations are told of a person, on a page (SPEC C-2)."""

from __future__ import annotations

from fastapi import Response

from vigil.board.kept import BULLETINS, KeptBoard
from vigil.contracts import Instant

from ..access import listed
from ..http.routes import Caller, Json, Shared, User
from ..http.wire import Answer


class BulletinView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A bulletin as it is."""

    owner: str
    agent_id: str
    text: str
    """At most 500 words. Of what came from outside it has the numbers alone."""
    is_empty: bool
    """There is nothing to tell; then no conversation is shown it."""
    made_at: Instant
    """Since when it says so: it's looked at every hour, and stays if nothing changed."""
    revision: int


class BulletinListing(Answer, frozen=True, kw_only=True):
    """Bulletins, by owner and agent."""

    bulletins: tuple[BulletinView, ...]


async def list_bulletins(edge: Shared, caller: Caller, user: User = None) -> Response:
    """List one's bulletins, one for each agent, and those of one's teams."""
    board = KeptBoard(edge.bus, BULLETINS)
    found = [one for whose in listed(caller, user) for one in await board.all(whose)]
    views = [
        BulletinView(
            owner=one.entity.owner,
            agent_id=one.entity.agent,
            text=one.entity.text,
            is_empty=one.entity.is_empty,
            made_at=one.entity.made_at,
            revision=one.number,
        )
        for one in found
    ]
    ordered = sorted(views, key=lambda one: (one.owner, one.agent_id))
    return Json(BulletinListing(bulletins=tuple(ordered)))
