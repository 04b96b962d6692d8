"""Conversations, and the sessions of an agent's own; the home first, then the newest."""

from __future__ import annotations

import secrets
from typing import Any, Final

from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.subjects import SessionKey
from vigil.teams import TEAM

from ....http.wire import Me, SessionList
from ...shapes.talk.shelf import ShelfRow, shelf_of
from ...visit import Visit

SHOWN_MAX: Final = 40
BESIDE_MAX: Final = 25
"""Of those beside a conversation."""


async def show(visit: Visit) -> dict[str, Any]:
    kind, after = visit.query.get("kind", "channel"), visit.query.get("after", "")
    words, is_archive = visit.query.get("words", "").strip(), "archived" in visit.query
    is_talk = kind == "channel"
    found = await visit.api.get(
        SessionList,
        "/api/sessions",
        kind=kind,
        after=after,
        limit=SHOWN_MAX,
        order="newest",
        # A search finds what is put away, too.
        archived=is_archive if is_talk and not words else None,
        words=words or None,
    )
    home = str(visit.home)
    has_home = is_talk and not (after or words or is_archive)
    return {
        "rows": shelf_of(found.sessions, home, has_home=has_home),
        "next_after": found.next_after,
        "home": home,
        "kind": kind,
        "kinds": tuple(SESSION_KINDS),
        "words": words,
        "is_archive": is_archive,
        "new": new_key(visit),
    }


def new_key(visit: Visit) -> str:
    """Return the key of a conversation that nobody began yet."""
    return f"{visit.reader.user}:vigil:chat-{secrets.token_hex(6)}"


async def beside(visit: Visit) -> list[ShelfRow]:
    """Return the list that stands beside a conversation. Raises: Problem."""
    found = await visit.api.get(
        SessionList, "/api/sessions", order="newest", archived=False, limit=BESIDE_MAX
    )
    return shelf_of(found.sessions, str(visit.home), has_home=True)


async def act(visit: Visit) -> str:
    """Go to a thread, which begins with the first message. Raises: InvalidInput, it can't be."""
    me = await visit.api.get(Me, "/api/me")
    agent = visit.wanted("agent").strip() or "vigil"
    owner = TEAM if agent in me.teams else me.user
    return f"/conversations/{SessionKey.of(owner, agent, visit.wanted('thread').strip())}"
