"""Sessions of the agent's own, read back: workers, branches, planners (`session_kinds`).

Nobody talks in them, so there is no transcript in the log. What stands for it is the task that
such a session was given, and what it thought aloud while it was at it, turn by turn. They are kept
in SYSTEM, for as long as `retention.system_days` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import structlog

from vigil.bus.bus import Bus, Message
from vigil.contracts import Control, TextBlock, Turn, decode_event, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey

from ..backlog.counts import Stretch, start_of
from ..http.problem import Problem
from ..http.wire import SessionList, SessionSummary, Transcript, TranscriptMessage
from .history import READS_AT_ONCE, read_page

log = structlog.get_logger("vigil.gateway")

STREAM: Final = "SYSTEM"


async def transcript(bus: Bus, session: SessionKey, stretch: Stretch) -> Transcript:
    """Return what it was asked and what it said in that part."""
    start = await start_of(bus, STREAM, session.turns, stretch)
    filters = [session.in_event("control"), session.turns]
    limit = 0 if stretch.after is None else stretch.limit
    found, has_more = await read_page(bus, STREAM, filters, start, limit)
    found = [one for one in found if not stretch.before or one.seq < stretch.before]
    return Transcript(
        session_key=str(session),
        messages=tuple(line for message in found for line in _lines(session, message)),
        next_after=found[-1].seq if has_more and found else None,
    )


def _lines(session: SessionKey, message: Message) -> Iterator[TranscriptMessage]:
    try:
        if session.is_turn(message.subject):
            yield from _said(message.seq, decode_turn(message.data))
        else:
            yield from _asked(message)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))


def _asked(message: Message) -> Iterator[TranscriptMessage]:
    event = decode_event(message.data)
    start = event.payload.start if isinstance(event, Control) else None
    if start is not None:
        yield TranscriptMessage(
            id=event.id,
            seq=message.seq,
            role="user",
            text=start.prompt,
            at=event.created_at,
            caused_by=event.caused_by,
        )


def _said(seq: int, turn: Turn) -> Iterator[TranscriptMessage]:
    blocks = [block for row in turn.rows if row.role == "assistant" for block in row.blocks]
    texts = [block.text for block in blocks if isinstance(block, TextBlock) and block.text.strip()]
    if texts:
        yield TranscriptMessage(
            id=turn.id,
            seq=seq,
            role="assistant",
            text="\n\n".join(texts),
            at=turn.created_at,
            caused_by=None if turn.event is None else turn.event.id,
        )


async def sessions(
    bus: Bus, whose: Iterable[Scope], kind: str, after: str, limit: int
) -> SessionList:
    """Return a page of the sessions of a kind, of those owners, after a key."""
    started: dict[str, int] = {}
    for one in whose:
        started |= await bus.subjects(STREAM, f"system.{one.agent}.{one.owner}.*.in.control")
    found = (SessionKey.of_subject(subject) for subject in started)
    keys = sorted((key for key in found if key.kind == kind and str(key) > after), key=str)
    gate = asyncio.Semaphore(READS_AT_ONCE)

    async def summary(key: SessionKey) -> SessionSummary:
        async with gate:
            newest = await bus.get_last(STREAM, key.turns)
        return SessionSummary(session_key=str(key), messages=0, last_at=_at(newest), kind=key.kind)

    page = keys[:limit]
    return SessionList(
        sessions=tuple(await asyncio.gather(*(summary(key) for key in page))),
        next_after=str(page[-1]) if len(keys) > limit else None,
    )


def _at(turn: Message | None) -> datetime | None:
    try:
        return None if turn is None else decode_turn(turn.data).created_at
    except InvalidInput:
        return None


async def check_exists(bus: Bus, session: SessionKey) -> None:
    """Raises: Problem, 404: nobody started it."""
    if await bus.get_last(STREAM, session.in_event("control")) is None:
        raise Problem(404, "there is no such session")
