"""The endpoints of sessions but for the busiest one: talking, reading, timers, stop."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Depends, Path, Query, Request, Response

from vigil.contracts import TIMER_ID_LENGTH_MAX, ControlPayload
from vigil.contracts.session_kinds import SESSION_KINDS, check_session_kind
from vigil.errors import InvalidInput
from vigil.marks import conversation_label

from ..access import listed, own_session
from ..backlog.counts import Stretch
from ..callers import SEQ_MAX, After, Caller, Readable, Session, Shared, User, body_of
from ..gone import check_exists, check_not_deleted, shown
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import (
    ChatAnswer,
    ChatRequest,
    Ticket,
    TicketRequest,
)
from ..sessions import catalog, history, inner
from ..sessions import chat as chats
from ..sessions.messages import parent_of
from ..state.tickets import TICKET_LIFE_S

_KINDS_MEANT: Final = ", ".join(f"{name}: {kind.meaning}" for name, kind in SESSION_KINDS.items())
WORDS_LENGTH_MAX: Final = 200
TimerId = Annotated[str, Path(json_schema_extra={"maxLength": TIMER_ID_LENGTH_MAX})]


# ---------------------------------------------------------------- talking


async def chat(
    request: Request,
    edge: Shared,
    caller: Caller,
    said: Annotated[ChatRequest, Depends(body_of(ChatRequest))],
) -> Response:
    """Say something and wait for the answer; after `gateway.chat_wait_s`, 202 without it."""
    answer = await chats.chat(edge, caller, said, parent_of(request.scope), request.receive)
    return Json(answer, 200 if isinstance(answer, ChatAnswer) else 202)


async def give_ticket(
    edge: Shared,
    caller: Caller,
    wanted: Annotated[TicketRequest, Depends(body_of(TicketRequest))],
) -> Response:
    """Get a ticket that opens one WebSocket of a session, from a browser."""
    session = shown(edge, own_session(wanted.session, caller))
    ticket = edge.tickets.give(str(session), caller, edge.clock.monotonic())
    return Json(Ticket(ticket=ticket, expires_in_s=TICKET_LIFE_S), 201)


async def needs_upgrade() -> Response:
    """Open a WebSocket: token or ticket, then frames of text.

    From the client: ClientMessage, ClientAck. From here: TokenFrame, ProgressFrame, MessageFrame,
    AcceptedFrame, ErrorFrame.
    """
    raise Problem(426, "this is a WebSocket", headers={"Upgrade": "websocket"})


# ---------------------------------------------------------------- sessions


async def list_sessions(
    edge: Shared,
    caller: Caller,
    user: User = None,
    kind: Annotated[
        str,
        Query(
            description=f"{_KINDS_MEANT}; all but the first are the agent's own",
            json_schema_extra={"enum": list(SESSION_KINDS)},
        ),
    ] = "channel",
    after: Annotated[str, Query(description="Continue after this session key")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    order: Annotated[
        catalog.Order,
        Query(description="By key, or where somebody wrote last first; only of conversations"),
    ] = "key",
    archived: Annotated[
        bool | None,
        Query(description="Only what you put away, or only the rest; absent: both"),
    ] = None,
    words: Annotated[
        str,
        Query(
            description="Only conversations whose title or thread has all of these words",
            json_schema_extra={"maxLength": WORDS_LENGTH_MAX},
        ),
    ] = "",
) -> Response:
    """List sessions: one's own and one's teams', or for an admin everybody's."""
    whose = listed(caller, user)
    if len(words) > WORDS_LENGTH_MAX:
        raise InvalidInput("words", f"must have at most {WORDS_LENGTH_MAX} characters")
    if check_session_kind(kind) != "channel":
        found = await inner.sessions(edge.bus, whose, kind, after, limit)
    else:
        labels = await conversation_label.all_of(edge.bus, caller.user)
        lists = catalog.Catalog(
            edge.bus, edge.recency, edge.read_marks, caller.user, labels, edge.talks
        )
        wish = catalog.ListWish(
            order=order, after=after, limit=limit, archived=archived, words=words
        )
        found = await lists.page(whose, wish)
    there = (one for one in found.sessions if not edge.switches.threads.has(one.session_key))
    return Json(msgspec.structs.replace(found, sessions=tuple(there)))


async def get_transcript(
    edge: Shared,
    session: Readable,
    after: Annotated[
        int | None,
        Query(ge=0, le=SEQ_MAX, description="Continue after this sequence; absent: the newest"),
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, le=SEQ_MAX, description="The newest before this sequence")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Read what was said, oldest first; of a session of the agent's own, its task and thoughts."""
    if after is not None and before is not None:
        raise InvalidInput("before", "can't be given together with after")
    stretch = Stretch(after=after, before=before or 0, limit=limit)
    read = inner.transcript if session.is_system else history.transcript
    found = await read(edge.bus, session, stretch)
    if not found.messages:
        await check_not_deleted(edge, session)
    return Json(found)


async def get_timeline(
    edge: Shared,
    session: Readable,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    turns: Annotated[bool, Query(description="Only turns")] = False,
) -> Response:
    """Read every record of a session, as stored."""
    wanted = session.turns if turns else session.everything
    found = await history.timeline(edge.bus, session, wanted, after, limit)
    if not found.records:
        await check_not_deleted(edge, session)
    return Json(found)


async def get_timers(edge: Shared, session: Readable) -> Response:
    """List the open follow-ups and reminders, soonest first."""
    return Json(await history.timers(edge.bus, session))


async def cancel_timer(
    request: Request, edge: Shared, session: Session, timer_id: TimerId
) -> Response:
    """Cancel a timer, also a reminder."""
    if len(timer_id) > TIMER_ID_LENGTH_MAX:
        raise InvalidInput("timer_id", f"must have at most {TIMER_ID_LENGTH_MAX} characters")
    await check_exists(edge, session)
    accepted = await edge.intake.control(
        session,
        ControlPayload(op="cancel_timer", timer_id=timer_id),
        parent=parent_of(request.scope),
    )
    return Json(accepted, 202)


async def stop(request: Request, edge: Shared, session: Readable) -> Response:
    """Stop the running turn of a session; one of the agent's own ends with all that it started."""
    parent = parent_of(request.scope)
    if session.is_system:
        await inner.check_exists(edge.bus, session)
        order = ControlPayload(op="cancel", reason="a person stopped it")
        return Json(await edge.intake.control(session, order, parent=parent), 202)
    await check_exists(edge, session)
    return Json(await edge.intake.control(session, ControlPayload(op="stop"), parent=parent), 202)
