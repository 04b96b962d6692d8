"""A conversation: what was said, what will be, and a word of one's own."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from vigil.subjects import SessionKey

from ...http.wire import TimerList, Transcript
from ..visit import Visit

SHOWN_MAX: Final = 50
CLIP: Final = 3_000
"""Characters of a message; one that is longer is whole on a page of its own."""


async def show(visit: Visit) -> dict[str, Any]:
    key = visit.named("key")
    path = f"/api/sessions/{key}"
    after = visit.query.get("after")
    count = 1 if "whole" in visit.query else SHOWN_MAX
    transcript, timers = await asyncio.gather(
        visit.api.get(Transcript, path, after=after, limit=count),
        visit.api.get(TimerList, f"{path}/timers"),
    )
    session = SessionKey.parse(key)
    return {
        "key": key,
        "messages": transcript.messages,
        "next_after": transcript.next_after if after is not None else None,
        "is_newest": after is None,
        "clip": None if "whole" in visit.query else CLIP,
        "timers": timers.timers,
        "may_speak": not session.is_system and visit.may_decide(key),
        "is_system": session.is_system,
        # So that a form that is sent twice says it once.
        "once": secrets.token_urlsafe(16),
    }


async def act(visit: Visit) -> str:
    """Say something, stop what runs, or cancel a timer. Raises: Problem."""
    key = visit.named("key")
    path = f"/api/sessions/{key}"
    match visit.wanted("do"):
        case "say":
            body = {"text": visit.wanted("text"), "idempotency_key": visit.wanted("once")}
            await visit.api.send("POST", f"{path}/messages", body)
        case "stop":
            await visit.api.send("POST", f"{path}/stop")
        case "cancel":
            await visit.api.send("DELETE", f"{path}/timers/{visit.wanted('timer')}")
    return f"/conversations/{key}#end"
