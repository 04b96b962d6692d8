"""/api/sessions/{key}/letters: what of a conversation the agent sees closed (FLOW F-1).

People see all of it whole, as ever; this names it, so that they can point at it.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request, Response

from vigil.bus.bus import Bus
from vigil.contracts import ControlPayload, Instant, Turn, decode_turn
from vigil.contracts.events import LetterName
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from ..edge import Edge
from ..endpoint import Endpoint
from ..http.problem import Problem
from ..http.routes import Json, Readable, Session, Shared
from ..http.wire import Accepted, Answer
from ..sessions.counts import Stretch, start_of
from ..sessions.history import read_page
from ..sessions.messages import parent_of

HANDLE_PATTERN: Final = "^[a-z][0-9]{1,9}$"
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
    is_vouched: bool
    """Whether somebody said that it's fine: its text counts as theirs, word for word."""


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
    trusted, turns = edge.switches.trusted, await turns_of(edge.bus, session)
    vouched = turns[-1][1].state.vouched if turns else ()
    return tuple(
        LetterView(
            handle=one.handle,
            what=one.what,
            source=one.source,
            size=one.size,
            at=one.at,
            turn_seq=seq,
            is_trusted=trusted.has(session.scope, one.source),
            is_vouched=LetterName(handle=one.handle, digest=one.digest) in vouched,
        )
        for seq, turn in reversed(turns)
        for one in reversed(turn.letters)
    )


async def vouch_for_letter(
    request: Request,
    edge: Shared,
    session: Session,
    handle: Annotated[str, Path(json_schema_extra={"pattern": HANDLE_PATTERN})],
) -> Response:
    """Say that a letter is fine: its text is yours from now on, word for word, in this
    conversation. Another text of that name is not."""
    found = [
        one
        for _, turn in await turns_of(edge.bus, session)
        for one in turn.letters
        if one.handle == handle and one.digest
    ]
    # Of a turn with more letters than there are names the last ones share one.
    if len(found) != 1:
        raise Problem(404, "there is no such letter, or none of that name alone", field="handle")
    letter = LetterName(handle=handle, digest=found[0].digest)
    order = ControlPayload(op="vouch", letter=letter)
    return Json(await edge.intake.control(session, order, parent=parent_of(request.scope)), 202)


PATH: Final = "/api/sessions/{key}/letters"
ENDPOINTS: Final = (
    Endpoint("GET", PATH, list_letters, {200: LetterList}, (404, 422, 503)),
    Endpoint(
        "POST", f"{PATH}/{{handle}}/vouch", vouch_for_letter, {202: Accepted}, (404, 422, 503)
    ),
)
