"""POST /api/chat: say something and wait for what comes of it (SPEC I-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from vigil.background.end import end_tasks
from vigil.bus.bus import Bus, BusError, Follower, Message
from vigil.contracts import Said, Turn, decode_said, decode_turn
from vigil.errors import InvalidInput, Unavailable
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from ..access import check_reach, own_session
from ..attachments import keep
from ..clients import answered
from ..http.decide import Exchange
from ..http.wire import Accepted, ChatAnswer, ChatMessage, ChatPending, ChatRequest
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

PAGE: Final = 100
"""Records that are read at once."""


def session_of(request: ChatRequest, principal: Principal, new_id: Callable[[], str]) -> SessionKey:
    """Return the session of a chat, a new one if it names no thread.

    Raises:
        InvalidInput: a part of the key can't be used.
        Problem: 403, it names another user.
    """
    thread = new_id() if request.thread_id is None else request.thread_id
    session = SessionKey.of(request.user_id, request.agent_id, thread)
    check_reach(principal, session.user, session.agent, "userId")
    return own_session(str(session), principal)


async def chat(
    edge: Edge,
    principal: Principal,
    request: ChatRequest,
    parent: str | None,
    receive: Callable[[], Awaitable[Any]],
) -> ChatAnswer | ChatPending:
    """Store the message and wait up to `gateway.chat_wait_s` for the end of its exchange.

    Raises:
        ClientGone: nobody waits any more; the message is stored all the same.
    """
    session = session_of(request, principal, edge.context.new_id)
    with edge.places.hold(principal.user):
        accepted = await keep.accepted(
            edge,
            principal.user,
            session,
            request.attachments,
            lambda files: edge.intake.accept(
                principal.user,
                session,
                request.message,
                field="message",
                attachments=files,
                reply_to=request.reply_to,
                parent=parent,
            ),
        )
        said = await _answer(edge, session, accepted, receive)
    if said is None:
        return ChatPending(
            event_id=accepted.event_id,
            seq=accepted.seq,
            session_key=str(session),
            thread_id=session.thread,
        )
    return ChatAnswer(
        response="\n\n".join(one.text for one in said),
        messages=tuple(
            ChatMessage(id=one.id, text=one.text, at=one.at, tag=one.tag) for one in said
        ),
        session_key=str(session),
        thread_id=session.thread,
        event_id=accepted.event_id,
        seq=accepted.seq,
    )


async def _answer(
    edge: Edge, session: SessionKey, accepted: Accepted, receive: Callable[[], Awaitable[Any]]
) -> tuple[Said, ...] | None:
    """Return what was said, or None if the exchange isn't over in time."""
    exchange = _exchange(edge.bus, session, accepted)
    wait_s = edge.config.chat_wait_s
    try:
        return await answered(
            exchange, receive, edge.stopping, timeout_s=wait_s, name="gateway-chat"
        )
    except (Unavailable, BusError) as error:
        # The message is stored: an error would make the client say it again.
        log.warning("can't follow", action="gateway.chat", error=str(error))
        return None


async def _exchange(bus: Bus, session: SessionKey, accepted: Accepted) -> tuple[Said, ...]:
    follower, exchange = await followed(bus, session, accepted)
    try:
        async for message in follower:
            take(exchange, session, message)
            if exchange.is_over:
                break
        return exchange.said
    finally:
        await follower.close()


async def followed(bus: Bus, session: SessionKey, accepted: Accepted) -> tuple[Follower, Exchange]:
    """Return what tells of all that comes of a message, and what waits for its end. Raises: as
    `Bus.follow`."""
    follower = await bus.follow(session.stream, filters_of(session), accepted.seq + 1)
    return follower, Exchange(accepted.event_id, accepted.seq)


@asynccontextmanager
async def listening(
    edge: Edge, session: SessionKey, accepted: Accepted
) -> AsyncIterator[tuple[Exchange, Callable[[], Awaitable[str | Message]]]]:
    """Follow what comes of a message, with the tokens of what is in the making: yield what waits
    for its end, and what gives the next token or record. Raises: as `Bus.follow`."""
    events = asyncio.Queue[str | Message]()

    async def read(follower: Follower) -> None:
        async for message in follower:
            events.put_nowait(message)

    follower, exchange = await followed(edge.bus, session, accepted)
    await edge.live.join(session, events.put_nowait)
    reading = asyncio.create_task(read(follower), name="gateway-listening")
    try:
        yield exchange, events.get
    finally:
        await end_tasks(reading)
        await follower.close()
        await edge.live.leave(session, events.put_nowait)


async def records_of(bus: Bus, session: SessionKey, accepted: Accepted) -> AsyncIterator[Message]:
    """Yield what there is of what comes of a message, and wait for nothing."""
    after, has_more = accepted.seq, True
    while has_more:
        filters = filters_of(session)
        page, has_more = await bus.page(session.stream, filters, after + 1, limit=PAGE)
        for message in page:
            after = message.seq
            yield message


def filters_of(session: SessionKey) -> list[str]:
    """Return where all that comes of a message stands."""
    return [session.out_all, session.turns, session.receipts]


def take(exchange: Exchange, session: SessionKey, message: Message) -> Turn | Said | None:
    """Have an exchange take in one record; return it, unless it's a receipt or can't be read."""
    try:
        if session.is_turn(message.subject):
            turn = decode_turn(message.data)
            exchange.take_turn(turn)
            return turn
        if message.subject.startswith(session.receipt("")):
            exchange.take_receipt(message.subject.rpartition(".")[2])
            return None
        said = decode_said(message.data)
        exchange.take_said(said)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return None
    else:
        return said
