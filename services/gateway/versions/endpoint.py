"""POST /api/sessions/{key}/versions: say something else in the place of a message, or have it
answered anew.

The message and all that came of it are taken back: no model sees them any more, and what was
planned since is void. The log keeps them; the transcript marks them as an older version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from fastapi import Depends, Request, Response

from vigil.bus.bus import Bus, Message
from vigil.contracts import Turn, UserMessage, decode_event
from vigil.contracts.calls.caller import CallerTools
from vigil.contracts.events import Replaced
from vigil.contracts.history import TakenBack
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from ..backlog.counts import start_of_newest
from ..callers import Caller, Session, Shared, body_of
from ..endpoint import Endpoint
from ..http.decide import keyed_event_id
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Accepted, CursorValue, KeyedBy, RequestBody, SaidText
from ..insight.shown import read_turn
from ..sessions.marks import taken_back_in
from ..sessions.messages import parent_of
from ..state.edge import Edge

PAGE: Final = 50


class VersionRequest(RequestBody, frozen=True, kw_only=True):
    """Take a message back, and say something in its place."""

    message: CursorValue | None = None
    """Sequence of the message of yours (`seq` in the transcript); absent: the newest."""
    text: SaidText | None = None
    """What is said instead; absent: the same, so that it is answered anew."""
    idempotency_key: KeyedBy | None = None
    """A name of yours for this request: repeating it is harmless for a day."""


async def replace_message(
    request: Request,
    edge: Shared,
    caller: Caller,
    session: Session,
    wanted: Annotated[VersionRequest, Depends(body_of(VersionRequest))],
) -> Response:
    """Say something else in the place of a message, or have it answered anew.

    With an `idempotency_key` name the message, too: the newest is another one afterwards.
    """
    return Json(await replace(edge, caller, session, wanted, parent_of(request.scope)), 202)


async def replace(
    edge: Edge,
    caller: Principal,
    session: SessionKey,
    wanted: VersionRequest,
    parent: str | None,
    tools: CallerTools | None = None,
) -> Accepted:
    """Store what stands in the place of a message from now on.

    Args:
        tools: that the program through which it is said runs itself.

    Raises:
        Problem: 403, 404, 409: it isn't the caller's, isn't there, or can't be taken back (now).
    """
    seq, message = await _message_of(edge.bus, session, wanted.message)
    if message.payload.by not in ("", caller.user):
        raise Problem(403, f"{message.payload.by} said that", field="message")
    known = taken_back_in(await edge.bus.get_last(session.stream, session.turns))
    by = next((one.by for one in known if one.said_from <= seq < one.by), 0)
    if by and wanted.idempotency_key is not None:
        event_id = keyed_event_id(caller.user, str(session), wanted.idempotency_key)
        _, taker = await _message_of(edge.bus, session, by)
        if taker.id == event_id:
            return Accepted(event_id=event_id, seq=by)
    if by:
        raise Problem(409, f"it was taken back already, by message {by}", field="message")
    replaced = await _replaced(edge.bus, session, seq, message, known)
    return await edge.intake.accept(
        caller.user,
        session,
        message.payload.text if wanted.text is None else wanted.text,
        key=wanted.idempotency_key,
        attachments=message.payload.attachments,
        replaces=replaced,
        reply_to=None if message.payload.reply_to is None else message.payload.reply_to.id,
        caller=tools,
        parent=parent,
    )


async def _message_of(bus: Bus, session: SessionKey, seq: int | None) -> tuple[int, UserMessage]:
    """Return a message of a person, the newest if none is named.

    Raises:
        Problem: 404, there is none.
    """
    if seq is None:
        found = await bus.get_last(session.stream, session.in_user)
    else:
        found = await bus.get_of(session, seq) if seq else None
    if found is None or found.subject != session.in_user:
        raise Problem(404, f"no message of a person is {seq or 'there'}", field="message")
    try:
        event = decode_event(found.data)
    except InvalidInput:
        event = None
    if not isinstance(event, UserMessage):
        raise Problem(404, f"{found.seq} can't be read", field="message")
    return found.seq, event


async def _replaced(
    bus: Bus, session: SessionKey, seq: int, message: UserMessage, known: Sequence[TakenBack]
) -> Replaced:
    """Return what taking a message back goes back to.

    Args:
        known: what was taken back so far.

    Raises:
        Problem: 409, it isn't taken up yet.
    """
    earlier, event_id = message.payload.replaces, message.id
    if earlier is not None and any(one.by == seq for one in known):
        # The turn before it is one of an older version; it goes back to where that one went.
        return msgspec.structs.replace(earlier, event_id=event_id)
    taking = await _taking(bus, session, seq, event_id)
    if taking is None:
        raise Problem(409, "it waits to be taken up: try again then", field="message")
    before = await _before(bus, session, taking)
    turn = None if before is None else read_turn(before)
    if before is None or turn is None:
        return Replaced(event_id=event_id, seq=seq)
    return Replaced(
        event_id=event_id,
        seq=seq,
        turn=turn.ordinal,
        turn_seq=before.seq,
        history_from=turn.state.history_from,
        summary_seq=before.seq if turn.summary else turn.state.summary_seq,
        follow_ups=tuple(turn.state.follow_ups),
    )


async def _taking(bus: Bus, session: SessionKey, seq: int, event_id: str) -> int | None:
    """Return the sequence of the turn that took a message up; None: it waits yet."""
    start, has_more = seq + 1, True
    while has_more:
        page, has_more = await bus.page(session.stream, [session.turns], start, limit=PAGE)
        for message in page:
            turn = read_turn(message)
            if turn is not None and _takes(turn, event_id):
                return message.seq
        has_more = has_more and bool(page)
        start = page[-1].seq + 1 if page else start
    return None


def _takes(turn: Turn, event_id: str) -> bool:
    loop = turn.state.loop
    is_open = loop is not None and event_id in (loop.cause.id, *loop.joined)
    return is_open or event_id in turn.ended


async def _before(bus: Bus, session: SessionKey, taking: int) -> Message | None:
    """Return the newest turn before another one; None: that is the first."""
    start = await start_of_newest(bus, session.stream, session.turns, 1, taking)
    page, _ = await bus.page(session.stream, [session.turns], start, limit=1)
    return page[0] if page and page[0].seq < taking else None


_PATH: Final = "/api/sessions/{key}/versions"
_ERRORS: Final = (403, 404, 409, 413, 422, 429, 503)
ENDPOINTS: Final = (
    Endpoint("POST", _PATH, replace_message, {202: Accepted}, _ERRORS, VersionRequest),
)
