"""/api/sessions/{key}/letters: what of a conversation the agent sees closed (FLOW F-1).

People see all of it whole, as ever; this names it, so that they can point at it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from fastapi import Path, Query, Request, Response

from vigil.bus.bus import Bus
from vigil.contracts import ControlPayload, Instant, Turn, decode_turn
from vigil.contracts.events import LetterName
from vigil.contracts.history import LetterHead
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey
from vigil.trust.letters import text_of

from ..backlog.counts import Stretch, start_of
from ..callers import Readable, Session, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Accepted, Answer
from ..sessions.history import read_page
from ..sessions.messages import parent_of
from ..state.edge import Edge

HANDLE_PATTERN: Final = "^[a-z][0-9]{1,9}$"
Handle = Annotated[str, Path(json_schema_extra={"pattern": HANDLE_PATTERN})]
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
    """In characters; 0: it's a file."""
    at: Instant
    turn_seq: int
    """Sequence of the turn that holds it, as in the transcript."""
    is_trusted: bool
    """Whether its source is trusted by now: what comes from it later is no letter."""
    is_vouched: bool
    """Whether somebody said that it's fine: its text counts as theirs, word for word."""


class LetterText(Answer, frozen=True, kw_only=True):
    """A letter, whole."""

    handle: str
    what: str
    digest: str
    """Of its text, or of the file: `vouch` takes it, so that you vouch for what you read."""
    text: str
    """Of a file: what it is, with its name."""
    at: Instant


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


class _HeldLetter(NamedTuple):
    """A letter, and the turn that holds it."""

    head: LetterHead
    seq: int
    turn: Turn


async def _found(edge: Edge, session: SessionKey, handle: str) -> _HeldLetter:
    """Return a letter by its name.

    Raises:
        Problem: 404, there is none; of a turn with more letters than names the last ones share one.
        Unavailable: the broker can't tell.
    """
    found = [
        _HeldLetter(one, seq, turn)
        for seq, turn in await turns_of(edge.bus, session)
        for one in turn.letters
        if one.handle == handle and one.digest
    ]
    if len(found) != 1:
        raise Problem(404, "there is no such letter, or none of that name alone", field="handle")
    return found[0]


async def show_letter(edge: Shared, session: Readable, handle: Handle) -> Response:
    """Show a letter whole, as it would be open to the agent: read it before you vouch for it."""
    letter = await _found(edge, session, handle)
    text = text_of(letter.turn.rows, letter.head)
    if text is None:
        raise Problem(404, "its text is gone", field="handle")
    head = letter.head
    shown = LetterText(
        handle=head.handle, what=head.what, digest=head.digest, text=text, at=head.at
    )
    return Json(shown)


async def vouch_for_letter(
    request: Request,
    edge: Shared,
    session: Session,
    handle: Handle,
    digest: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Say that a letter is fine: its text is yours from now on, word for word, in this
    conversation. Another text of that name is not; nor is one with another `digest`, if you say
    which you read."""
    head = (await _found(edge, session, handle)).head
    if digest is not None and digest != head.digest:
        raise Problem(409, "it isn't the letter that you read", field="digest")
    return await _order(request, edge, session, "vouch", head)


async def stop_vouching(
    request: Request, edge: Shared, session: Session, handle: Handle
) -> Response:
    """Vouch for a letter no more: it is closed again. What was made of it meanwhile stays."""
    return await _order(
        request, edge, session, "unvouch", (await _found(edge, session, handle)).head
    )


async def _order(
    request: Request,
    edge: Edge,
    session: SessionKey,
    op: Literal["vouch", "unvouch"],
    head: LetterHead,
) -> Response:
    letter = LetterName(handle=head.handle, digest=head.digest)
    order = ControlPayload(op=op, letter=letter)
    return Json(await edge.intake.control(session, order, parent=parent_of(request.scope)), 202)


PATH: Final = "/api/sessions/{key}/letters"
_ONE: Final = f"{PATH}/{{handle}}"
_ERRORS: Final = (404, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", PATH, list_letters, {200: LetterList}, _ERRORS),
    Endpoint("GET", _ONE, show_letter, {200: LetterText}, _ERRORS),
    Endpoint("POST", f"{_ONE}/vouch", vouch_for_letter, {202: Accepted}, (404, 409, 422, 503)),
    Endpoint("DELETE", f"{_ONE}/vouch", stop_vouching, {202: Accepted}, _ERRORS),
)
