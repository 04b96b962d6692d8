"""POST /api/sessions/{key}/past: what was said in a conversation elsewhere, to read and go on with.

A few messages at a time, in their order. They are stored in a thread that holds nothing else, and
nothing is done about them (ADR 75).
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Final

import msgspec
from fastapi import Depends, Response

from vigil.contracts import Instant
from vigil.contracts.past.words import PastRole, PastWords
from vigil.errors import WrongLastSequence
from vigil.marks import conversation_label
from vigil.marks.conversation_label import TITLE_LENGTH_MAX, ConversationLabel
from vigil.past import intake
from vigil.subjects import SessionKey, token_of

from ..callers import Caller, Session, Shared, body_of
from ..endpoint import Endpoint
from ..http.decide import check_text
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, RequestBody, SaidText
from ..state.edge import Edge

MESSAGES_MAX: Final = 100
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class PastMessage(RequestBody, frozen=True, kw_only=True):
    """One message, as it was said."""

    id: Name
    """The one that it had there."""
    role: PastRole
    text: SaidText
    at: Instant


class PastRequest(RequestBody, frozen=True, kw_only=True):
    """Messages of a conversation that was led elsewhere."""

    origin: Annotated[str, msgspec.Meta(pattern="^[a-z]{1,32}$")]
    """Whose form it was in: `hermes`, say."""
    conversation: Name
    """What tells it from the others there."""
    first: Count = 1
    """The place in it of the first of these messages. They follow those that were taken."""
    total: Count
    """How many messages it has: with the last of them the agent begins with it."""
    messages: Annotated[
        tuple[PastMessage, ...], msgspec.Meta(min_length=1, max_length=MESSAGES_MAX)
    ]
    title: Annotated[str, msgspec.Meta(max_length=TITLE_LENGTH_MAX)] = ""
    """What it is called in your list, unless you named it here."""
    is_trusted: bool = False
    """You vouch for it; else it's content from outside, whoever it says that said it."""


class PastTaken(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What became of them."""

    session_key: str
    new: int
    there: int
    """They were taken before."""


async def take_past(
    edge: Shared,
    caller: Caller,
    session: Session,
    wanted: Annotated[PastRequest, Depends(body_of(PastRequest))],
) -> Response:
    """Import messages of a conversation that you led elsewhere into a thread that is empty."""
    if session.user != caller.user:
        raise Problem(403, "what you said elsewhere comes into a conversation of your own")
    if edge.switches.is_erasing(session.user):
        raise erasing()
    edge.intake.room.check_disk()
    now = edge.clock.now()
    for message in wanted.messages:
        check_text("text", message.text, bytes_max=edge.config.text_bytes_max)
    of = token_of("past", wanted.origin, wanted.conversation)
    words = [
        PastWords(
            id=message.id,
            session_key=str(session),
            role=message.role,
            text=message.text,
            at=message.at,
            of=of,
            number=wanted.first + place,
            origin=wanted.origin,
            imported_at=now,
            imported_by=caller.user,
            is_tainted=not wanted.is_trusted,
        )
        for place, message in enumerate(wanted.messages)
    ]
    try:
        taken = await intake.take(edge.bus, session, words, wanted.total, now, edge.past_ids)
    except intake.ThreadBegun as error:
        raise Problem(409, f"{session} has begun: name another thread", field="key") from error
    await _name(edge, caller.user, session, wanted.title)
    return Json(PastTaken(session_key=str(session), new=taken.new, there=taken.there))


async def _name(edge: Edge, reader: str, session: SessionKey, title: str) -> None:
    """Call a conversation so that nobody named. A repeat does what one before it didn't get to."""
    title = " ".join(title.split())
    known, revision = await conversation_label.find(edge.bus, reader, session)
    if not title or known is not None:
        return
    label = ConversationLabel(reader=reader, session=str(session), at=edge.clock.now(), title=title)
    with contextlib.suppress(WrongLastSequence):  # they name it at this very moment
        await conversation_label.put(edge.bus, label, expect=revision)


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/api/sessions/{key}/past",
        take_past,
        {200: PastTaken},
        (403, 409, 413, 422, 503),
        PastRequest,
    ),
)
