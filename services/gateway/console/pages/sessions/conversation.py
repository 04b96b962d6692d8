"""A conversation: what was said, what tools did, what will be, and a word of one's own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from typing import Any, Final, NamedTuple

import msgspec

from vigil.board.kinds.approval import ApprovalList
from vigil.subjects import SessionKey
from vigil.texts.glyphs import visible

from ....http import body
from ....http.problem import Problem
from ....http.wire import (
    Forked,
    Readiness,
    Timeline,
    TimerList,
    Transcript,
    TranscriptMessage,
)
from ....insight.now import SessionNow
from ....sessions.labels import SessionLabel
from ....trust.letters import LetterList, LetterText, LetterView
from ....work.health import CircuitView, HealthView
from ...shapes.activity import SLOW, doing_of
from ...shapes.bodies import SHORT, bodies_of
from ...shapes.cards import ToolCard, cards_of
from ...shapes.lists.leaf import leaf_of
from ...shapes.talk.older import folded
from ...shapes.talk.requests import (
    Entry,
    RequestCard,
    children_of,
    place_of,
    request_card,
    with_requests,
)
from ...shapes.talk.shelf import ShelfRow, called_by_kind
from ...text import LENGTH_MAX
from ...visit import Visit
from ..about.welcome import errand_of
from . import conversations
from .deeds import act, ask

__all__ = ["act", "ask", "show"]
SHOWN_MAX: Final = 50
BEGUN_MAX: Final = 6
"""Messages of the other conversation that the page of a fork shows."""
TURNS_MAX: Final = 200
"""That are looked through for calls of tools."""
CARDS_MAX: Final = 40
REQUESTS_MAX: Final = 50
WHOLE_CARDS_MAX: Final = 3
"""Requests shown with every way to decide them; those of older ones are on their own pages."""
LETTERS_MAX: Final = 20
_HANDLE: Final = re.compile(r"[a-z]\d{1,9}", re.ASCII)


class ShownPart(NamedTuple):
    """What a page shows of a conversation."""

    transcript: Transcript
    letters: tuple[LetterView, ...]
    has_earlier: bool


class ModelState(NamedTuple):
    """How what thinks does."""

    is_running: bool
    failed: CircuitView | None
    """A model that failed again and again."""


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
    session = SessionKey.parse(key)
    is_newest = after is None and before is None
    origin = transcript.fork_of
    has_earlier = len(transcript.messages) == count and after != "0"
    entries, (label, shelf), read = await asyncio.gather(
        _entries(visit, session, ShownPart(transcript, letters.letters, has_earlier)),
        _beside(visit, session, transcript if is_newest else None),
        _read(visit, path, visit.query.get("letter", "")),
    )
    doing = doing_of(now, entries, visit.now) if is_newest else None
    begun = [] if origin is None or has_earlier else await _until(visit, origin)
    return {
        "key": key,
        "title": called_by_kind(key, str(visit.home)) or (label.title if label else ""),
        "label": label,
        "names": await _names(visit, session, entries, origin),
        "shelf": shelf,
        "new": conversations.new_key(visit),
        "entries": folded(entries),
        "whole_cards": [one.request.id for one in entries if isinstance(one, RequestCard)][
            -WHOLE_CARDS_MAX:
        ],
        "last_of_mine": _last_of_person(transcript),
        "next_after": transcript.next_after if after is not None else None,
        "is_newest": is_newest,
        "newest": transcript.messages[-1].seq if transcript.messages else 0,
        "doing": doing,
        **_limits(visit),
        "thinker": await _model_state(visit) if doing is not None and doing.is_slow else None,
        "earlier": transcript.messages[0].seq if has_earlier else None,
        "origin": origin,
        "begun_with": begun,
        # In a thread: the structure of many long texts takes a while to find.
        "bodies": await asyncio.to_thread(
            lambda: bodies_of(begun, SHORT) | bodies_of(transcript.messages, is_whole=is_whole)
        ),
        "timers": timers.timers,
        "told": (),
        **_letters(visit, letters, read, entries),
        "begun": reply_to(visit.query.get("reply", "")) or errand_of(visit.query.get("errand", "")),
        "state": now,
        "may_speak": not session.is_system and visit.may_decide(key),
        "is_system": session.is_system,
        "editing": visit.query.get("edit", ""),
        "replying": _replied(transcript, visit.query.get("reply", "")),
        "places": {one.id: one.seq for one in transcript.messages},
    }


async def _names(
    visit: Visit, session: SessionKey, entries: list[Entry], origin: Forked | None
) -> dict[str, str]:
    """Return what other sessions are called that the page names."""
    asked = (one.request.session_key for one in entries if isinstance(one, RequestCard))
    others = {one for one in asked if one != str(session)}
    others |= {origin.session_key} if origin is not None else set()
    return await visit.titles(others)


def _limits(visit: Visit) -> dict[str, Any]:
    """Return what the page's own script and its forms go by."""
    bytes_max = visit.edge.config.attachment_bytes_max
    return {
        # So that a form that is sent twice says it once.
        "once": secrets.token_urlsafe(16),
        "slow_ms": int(SLOW.total_seconds() * 1000),
        "file_bytes_max": bytes_max,
        "too_large": body.at_most(bytes_max),
    }


async def _beside(
    visit: Visit, session: SessionKey, shown: Transcript | None
) -> tuple[SessionLabel | None, list[ShelfRow]]:
    """Return how the reader has it in their list, and the list, which knows that it is read."""
    label = await _label(visit, session, shown)
    return label, await conversations.beside(visit)


async def _label(
    visit: Visit, session: SessionKey, shown: Transcript | None
) -> SessionLabel | None:
    """Return how the reader has it in their list, read up to what they are shown; None: they
    can't have it there, or nobody said anything yet."""
    if session.is_system or not visit.may_decide(str(session)):
        return None
    is_read = shown is not None and shown.messages and not visit.is_refreshed
    wanted = {"read_to": shown.messages[-1].seq} if shown and is_read else {}
    with contextlib.suppress(Problem):
        found = await visit.api.send("PATCH", f"/api/sessions/{session}", wanted)
        return msgspec.convert(found, SessionLabel)
    return None


async def _model_state(visit: Visit) -> ModelState:
    """Return how what thinks does, as nothing comes of it."""
    ready, health = await asyncio.gather(
        visit.api.checks(Readiness, "/readyz"), visit.api.get(HealthView, "/api/health")
    )
    circuits = [one for one in health.circuits if one.name.startswith("model:")]
    return ModelState(
        is_running=ready.checks.get("cortex", False),
        failed=next((one for one in circuits if one.state != "closed"), None),
    )


def _last_of_person(transcript: Transcript) -> int:
    """Return the sequence of what a person said last of what is shown; 0: nothing."""
    said = [one for one in transcript.messages if one.role == "user" and not one.imported_from]
    return next((one.seq for one in reversed(said) if not one.taken_back_by), 0)


def _letters(
    visit: Visit, found: LetterList, read: LetterText | None, entries: list[Entry]
) -> dict[str, Any]:
    """Return what is shown of letters: those of the conversation, and the one that is read."""
    return {
        "has_letters_open": "letters" in visit.query,
        "letters": leaf_of(
            {**visit.query, "letters": "1"}, "further", LETTERS_MAX, ("letters", "after", "before")
        ).part(found.letters),
        "letter_count": len(found.letters),
        "placed": {one.handle for one in entries if isinstance(one, LetterView)},
        "read": read,
        # Whoever vouches for it is to see what it hides, too.
        "read_text": "\n".join(map(visible, read.text.split("\n"))) if read else "",
        "read_max": LENGTH_MAX,
        "read_is_fine": any(
            one.is_vouched for one in found.letters if read and one.handle == read.handle
        ),
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


async def _entries(visit: Visit, session: SessionKey, shown: ShownPart) -> list[Entry]:
    """Return the messages, in the order of the log, with what stood between them: calls of tools,
    letters, and requests to the reader."""
    path, messages = f"/api/sessions/{session}", shown.transcript.messages
    start = messages[0].seq - 1 if messages else 0
    turns, mine, waiting = await asyncio.gather(
        visit.api.get(Timeline, f"{path}/timeline", after=start, limit=TURNS_MAX, turns=True),
        visit.api.get(
            ApprovalList, "/api/approvals", state="all", session=str(session), limit=REQUESTS_MAX
        ),
        visit.open_requests(),
    )
    last = messages[-1].seq if shown.transcript.next_after else None
    cards = [one for one in cards_of(turns.records) if last is None or one.seq < last]
    letters = [
        one
        for one in shown.letters
        if start < one.turn_seq and (last is None or one.turn_seq < last)
    ]
    of_log: list[TranscriptMessage | ToolCard | LetterView]
    of_log = [*messages, *cards[-CARDS_MAX:], *letters]
    children = children_of(session, turns.records)
    asked = {one.id: one for one in mine.approvals}
    asked |= {one.id: one for one in waiting if one.session_key in children}
    since = messages[0].at if messages and shown.has_earlier else None
    until = messages[-1].at if messages and last is not None else None
    of_log.sort(key=place_of)
    return with_requests(
        [*of_log],
        (
            request_card(one, may_decide=visit.may_decide(one.session_key))
            for one in asked.values()
            if (since is None or one.asked_at >= since) and (until is None or one.asked_at < until)
        ),
    )


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
