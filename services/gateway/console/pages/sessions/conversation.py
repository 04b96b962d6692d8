"""A conversation: what was said, what tools did, what will be, and a word of one's own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from typing import Any, Final

from vigil.subjects import SessionKey
from vigil.texts.glyphs import visible

from ....http.problem import Problem
from ....http.wire import Forked, Timeline, TimerList, Transcript, TranscriptMessage
from ....insight.now import SessionNow
from ....trust.letters import LetterList, LetterText
from ...shapes.activity import doing_of
from ...shapes.bodies import SHORT, bodies_of
from ...shapes.cards import ToolCard, cards_of
from ...text import LENGTH_MAX
from ...visit import Visit, segment_of
from . import orders

SHOWN_MAX: Final = 50
BEGUN_MAX: Final = 6
"""Messages of the other conversation that the page of a fork shows."""
TURNS_MAX: Final = 200
"""That are looked through for calls of tools."""
CARDS_MAX: Final = 40
LETTERS_MAX: Final = 20
_HANDLE: Final = re.compile(r"[a-z]\d{1,9}", re.ASCII)


async def show(visit: Visit) -> dict[str, Any]:
    key = visit.named("key")
    path = f"/api/sessions/{key}"
    after, before = visit.query.get("after"), visit.query.get("before")
    is_whole = "whole" in visit.query
    count = 1 if is_whole else SHOWN_MAX
    transcript, timers, letters, now = await asyncio.gather(
        visit.api.get(Transcript, path, after=after, before=before, limit=count),
        visit.api.get(TimerList, f"{path}/timers"),
        visit.api.get(LetterList, f"{path}/letters"),
        visit.api.get(SessionNow, f"{path}/now"),
    )
    read = await _read(visit, path, visit.query.get("letter", ""))
    session = SessionKey.parse(key)
    origin = transcript.fork_of
    has_earlier = len(transcript.messages) == count and after != "0"
    entries, is_newest = await _entries(visit, path, transcript), after is None and before is None
    begun = [] if origin is None or has_earlier else await _until(visit, origin)
    return {
        "key": key,
        "entries": entries,
        "next_after": transcript.next_after if after is not None else None,
        "is_newest": is_newest,
        "doing": doing_of(now, entries) if is_newest else None,
        "earlier": transcript.messages[0].seq if has_earlier else None,
        "origin": origin,
        "begun_with": begun,
        # In a thread: the structure of many long texts takes a while to find.
        "bodies": await asyncio.to_thread(
            lambda: bodies_of(begun, SHORT) | bodies_of(transcript.messages, is_whole=is_whole)
        ),
        "timers": timers.timers,
        "told": (),
        "has_letters_open": "letters" in visit.query,
        "letters": letters.letters[:LETTERS_MAX],
        "read": read,
        # Whoever vouches for it is to see what it hides, too.
        "read_text": "\n".join(map(visible, read.text.split("\n"))) if read else "",
        "read_max": LENGTH_MAX,
        "read_is_fine": any(
            one.is_vouched for one in letters.letters if read and one.handle == read.handle
        ),
        "begun": reply_to(visit.query.get("reply", "")),
        "state": now,
        "may_speak": not session.is_system and visit.may_decide(key),
        "is_system": session.is_system,
        "editing": visit.query.get("edit", ""),
        "replying": _replied(transcript, visit.query.get("reply", "")),
        "places": {one.id: one.seq for one in transcript.messages},
        # So that a form that is sent twice says it once.
        "once": secrets.token_urlsafe(16),
    }


async def _read(visit: Visit, path: str, handle: str) -> LetterText | None:
    """Return a letter whole: nobody vouches for what they weren't shown."""
    if not _HANDLE.fullmatch(handle):
        return None
    with contextlib.suppress(Problem):
        return await visit.api.get(LetterText, f"{path}/letters/{handle}")
    return None


def _replied(transcript: Transcript, seq: str) -> TranscriptMessage | None:
    """Return what the agent said that is to be replied to, if the page shows it."""
    said = (one for one in transcript.messages if one.role == "assistant")
    return next((one for one in said if str(one.seq) == seq), None)


def reply_to(handle: str) -> str:
    """Return how a reply begins that opens a letter; nothing else becomes a part of a message.

    >>> reply_to("a12"), reply_to("<b>")
    ('open a12: ', '')
    """
    return f"open {handle}: " if _HANDLE.fullmatch(handle) else ""


async def _entries(
    visit: Visit, path: str, transcript: Transcript
) -> list[TranscriptMessage | ToolCard]:
    """Return the messages with the calls of tools between them, in the order of the log."""
    messages = transcript.messages
    if not messages:
        return []
    found = await visit.api.get(
        Timeline, f"{path}/timeline", after=messages[0].seq - 1, limit=TURNS_MAX, turns=True
    )
    last = messages[-1].seq if transcript.next_after else None
    cards = [one for one in cards_of(found.records) if last is None or one.seq < last]
    return sorted([*messages, *cards[-CARDS_MAX:]], key=lambda one: one.seq)


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


async def act(visit: Visit) -> str | dict[str, Any]:
    """Say something, also in a message's place, stop what runs, cancel a timer, fork, or delete it.
    Raises: Problem."""
    key = visit.named("key")
    path = f"/api/sessions/{key}"
    match visit.wanted("do"):
        case "say":
            return await orders.take(visit, visit.wanted("text"))
        case "replace":
            await orders.replace(visit, visit.number("message"), visit.form.get("instead"))
        case "vouch" | "unvouch" as wanted:
            letter = f"{path}/letters/{segment_of(visit.wanted('letter'))}/vouch"
            if wanted == "unvouch":
                await visit.api.send("DELETE", letter)
            else:
                await visit.api.send("POST", letter, query={"digest": visit.wanted("digest")})
            return f"/conversations/{key}#letters"
        case "trust":
            await orders.trust(visit, visit.wanted("source"))
            return f"/conversations/{key}#letters"
        case "stop":
            await visit.api.send("POST", f"{path}/stop")
        case "cancel":
            await visit.api.send("DELETE", f"{path}/timers/{visit.wanted('timer')}")
        case "delete":
            query = {"memories": "true"} if visit.form.get("memories") else None
            await visit.api.send("DELETE", path, query=query)
            return "/conversations"
        case "fork":
            made = await visit.api.send("POST", f"{path}/forks", {"turn": visit.number("turn")})
            return f"/conversations/{made['session_key']}#end"
    return f"/conversations/{key}#end"
