"""A conversation: what was said, what will be, and a word of one's own."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from vigil.subjects import SessionKey

from ...http.problem import Problem
from ...http.wire import Forked, TimerList, Transcript, TranscriptMessage
from ..visit import Visit

SHOWN_MAX: Final = 50
BEGUN_MAX: Final = 6
"""Messages of the other conversation that the page of a fork shows."""
CLIP: Final = 3_000
"""Characters of a message; one that is longer is whole on a page of its own."""


async def show(visit: Visit) -> dict[str, Any]:
    key = visit.named("key")
    path = f"/api/sessions/{key}"
    after, before = visit.query.get("after"), visit.query.get("before")
    count = 1 if "whole" in visit.query else SHOWN_MAX
    transcript, timers = await asyncio.gather(
        visit.api.get(Transcript, path, after=after, before=before, limit=count),
        visit.api.get(TimerList, f"{path}/timers"),
    )
    session = SessionKey.parse(key)
    origin = transcript.fork_of
    has_earlier = len(transcript.messages) == count and after != "0"
    return {
        "key": key,
        "messages": transcript.messages,
        "next_after": transcript.next_after if after is not None else None,
        "is_newest": after is None and before is None,
        "earlier": transcript.messages[0].seq if has_earlier else None,
        "origin": origin,
        "begun_with": [] if origin is None or has_earlier else await _until(visit, origin),
        "clip": None if "whole" in visit.query else CLIP,
        "timers": timers.timers,
        "may_speak": not session.is_system and visit.may_decide(key),
        "is_system": session.is_system,
        # So that a form that is sent twice says it once.
        "once": secrets.token_urlsafe(16),
    }


async def _until(visit: Visit, origin: Forked) -> list[TranscriptMessage]:
    """Return the last of what a fork began with: what was said up to its turn."""
    path = f"/api/sessions/{origin.session_key}"
    try:
        earlier, later = await asyncio.gather(
            visit.api.get(Transcript, path, before=origin.turn, limit=BEGUN_MAX),
            visit.api.get(Transcript, path, after=origin.turn, limit=BEGUN_MAX),
        )
    except Problem:  # it was removed
        return []
    said = [one for one in later.messages if one.turn_seq == origin.turn]
    return [*earlier.messages, *said][-BEGUN_MAX:]


async def act(visit: Visit) -> str:
    """Say something, stop what runs, cancel a timer, or fork. Raises: Problem."""
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
        case "fork":
            made = await visit.api.send("POST", f"{path}/forks", {"turn": visit.number("turn")})
            return f"/conversations/{made['session_key']}#end"
    return f"/conversations/{key}#end"
