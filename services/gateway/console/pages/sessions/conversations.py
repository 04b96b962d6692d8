"""Conversations, and the sessions of an agent's own; the home first."""

from __future__ import annotations

from typing import Any, Final

from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.subjects import SessionKey
from vigil.teams import TEAM

from ....http.wire import Me, SessionList, SessionSummary
from ...visit import Visit

SHOWN_MAX: Final = 50


async def show(visit: Visit) -> dict[str, Any]:
    kind, after = visit.query.get("kind", "channel"), visit.query.get("after", "")
    me = await visit.api.get(Me, "/api/me")
    found = await visit.api.get(
        SessionList, "/api/sessions", kind=kind, after=after, limit=SHOWN_MAX
    )
    home = str(SessionKey(visit.reader.user, "vigil", me.home_thread))
    return {
        "sessions": sorted(found.sessions, key=lambda one: _place(one, home)),
        "next_after": found.next_after,
        "home": home,
        "kind": kind,
        "kinds": tuple(SESSION_KINDS),
    }


def _place(one: SessionSummary, home: str) -> tuple[bool, float, str]:
    at = one.last_at.timestamp() if one.last_at else 0.0
    return one.session_key != home, -at, one.session_key


async def act(visit: Visit) -> str:
    """Go to a thread, which begins with the first message. Raises: InvalidInput, it can't be."""
    me = await visit.api.get(Me, "/api/me")
    agent = visit.wanted("agent").strip() or "vigil"
    owner = TEAM if agent in me.teams else me.user
    return f"/conversations/{SessionKey.of(owner, agent, visit.wanted('thread').strip())}"
