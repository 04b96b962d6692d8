"""/api/sessions/{key}/letters: what of a conversation the agent sees closed (FLOW F-1).

People see all of it whole, as ever; this names it, so that they can point at it.
"""

from __future__ import annotations

from typing import Final

from fastapi import Response

from vigil.bus.bus import Bus
from vigil.contracts import Instant, Turn, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from ..edge import Edge
from ..endpoint import Endpoint
from ..http.routes import Json, Readable, Shared
from ..http.wire import Answer
from ..sessions.counts import Stretch, start_of
from ..sessions.history import read_page

TURNS_MAX: Final = 200
"""That are looked through, the newest."""


class LetterView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A letter: the agent sees its envelope, until it is opened."""

    handle: str
    """Its name: "open a12", said in this conversation, opens it for the answer to that."""
    what: str
    source: str
    """What it is from, as you may trust it; empty: nothing that has a name."""
    size: int
    """In characters."""
    at: Instant
    turn_seq: int
    """Sequence of the turn that holds it, as in the transcript."""
    is_trusted: bool
    """Whether its source is trusted by now: what comes from it later is no letter."""


class LetterList(Answer, frozen=True, kw_only=True):
    """Letters of the newest turns, the newest first."""

    letters: tuple[LetterView, ...]


async def turns_of(bus: Bus, session: SessionKey) -> list[tuple[int, Turn]]:
    """Return the newest turns that can be read, with their places. Raises: Unavailable."""
    stretch = Stretch(limit=TURNS_MAX)
    start = await start_of(bus, session.stream, session.turns, stretch)
    found, _ = await read_page(bus, session.stream, [session.turns], start, TURNS_MAX)
    there: list[tuple[int, Turn]] = []
    for message in found:
        try:
            there.append((message.seq, decode_turn(message.data)))
        except InvalidInput:
            continue
    return there


async def list_letters(edge: Shared, session: Readable) -> Response:
    """List the letters of a conversation: what the agent sees closed, since others had a part."""
    return Json(LetterList(letters=await letters_of(edge, session)))


async def letters_of(edge: Edge, session: SessionKey) -> tuple[LetterView, ...]:
    """Return the letters of a session. Raises: Unavailable."""
    trusted = edge.switches.trusted
    return tuple(
        LetterView(
            handle=one.handle,
            what=one.what,
            source=one.source,
            size=one.size,
            at=one.at,
            turn_seq=seq,
            is_trusted=trusted.has(session.scope, one.source),
        )
        for seq, turn in reversed(await turns_of(edge.bus, session))
        for one in reversed(turn.letters)
    )


PATH: Final = "/api/sessions/{key}/letters"
ENDPOINTS: Final = (Endpoint("GET", PATH, list_letters, {200: LetterList}, (404, 422, 503)),)
