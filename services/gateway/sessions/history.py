"""Reading a session back from the log: transcript, timeline, timers.

Everything is read where it's stored; the gateway keeps no copy. Pages are bounded in messages
and in bytes, and continue at a stream sequence.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Control,
    UserMessage,
    decode_event,
    decode_said,
    decode_turn,
)
from vigil.contracts.codec import decode_past
from vigil.errors import InvalidInput
from vigil.observe import trace
from vigil.past import places
from vigil.subjects import SessionKey

from ..backlog.counts import Stretch, start_of
from ..http.decide import OpenTimer, open_timers
from ..http.wire import (
    Forked,
    Timeline,
    TimelineRecord,
    TimerList,
    TimerView,
    Transcript,
    TranscriptMessage,
)
from .marks import marked, taken_back_in

log = structlog.get_logger("vigil.gateway")

PAGE_BYTES_MAX: Final = 8 * 1024 * 1024
READS_AT_ONCE: Final = 32
_WITH_ID: Final = ("out.said.", "receipt.", "send.", "attempt.", "call.")
"""What is recorded about an effect, whose id ends the subject."""


async def read_page(
    bus: Bus, stream: str, filters: Sequence[str], start: int, limit: int
) -> tuple[list[Message], bool]:
    """Return up to `limit` messages from `start` on, and whether there are more."""
    return await bus.page(stream, filters, start, limit=limit, bytes_max=PAGE_BYTES_MAX)


# ---------------------------------------------------------------- transcript and timeline


async def transcript(bus: Bus, session: SessionKey, stretch: Stretch) -> Transcript:
    """Return what was said in that part of a conversation."""
    start = await start_of(bus, session.stream, session.transcript, stretch)
    (found, has_more), fork_of, newest = await asyncio.gather(
        read_page(bus, session.stream, [session.transcript], start, stretch.limit),
        origin_of(bus, session),
        bus.get_last(session.stream, session.turns),
    )
    found = [one for one in found if not stretch.before or one.seq < stretch.before]
    lines = [line for message in found if (line := _line(session, message)) is not None]
    return Transcript(
        session_key=str(session),
        messages=tuple(marked(lines, taken_back_in(newest))),
        next_after=found[-1].seq if has_more and found else None,
        fork_of=fork_of,
    )


def _line(session: SessionKey, message: Message) -> TranscriptMessage | None:
    """Return one line, or None for a record that can't be read."""
    try:
        if message.subject == session.in_user:
            return _of_person(message)
        if places.is_past(message.subject):
            return _imported(message)
        said = decode_said(message.data)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return None
    return TranscriptMessage(
        id=said.id,
        seq=message.seq,
        role="assistant",
        text=said.text,
        at=said.at,
        caused_by=said.caused_by,
        tag=said.tag,
        turn_seq=said.turn_seq,
        is_tainted=said.is_tainted,
        attachments=said.attachments,
    )


def _of_person(message: Message) -> TranscriptMessage:
    event = decode_event(message.data)
    if not isinstance(event, UserMessage):
        raise InvalidInput("type", f"{event.__class__.__name__} on the subject of user messages")
    return TranscriptMessage(
        id=event.id,
        seq=message.seq,
        role="user",
        text=event.payload.text,
        at=event.created_at,
        caused_by=event.caused_by,
        by=event.payload.by,
        attachments=event.payload.attachments,
        reply_to=None if event.payload.reply_to is None else event.payload.reply_to.id,
        replaces=None if event.payload.replaces is None else event.payload.replaces.event_id,
    )


def _imported(message: Message) -> TranscriptMessage:
    words = decode_past(message.data)
    return TranscriptMessage(
        id=words.id,
        seq=message.seq,
        role="user" if words.role == "user" else "assistant",
        text=words.text,
        at=words.at,
        caused_by=None,
        by=words.by,
        attachments=words.attachments,
        is_tainted=words.is_tainted,
        imported_from=words.origin,
    )


async def timeline(bus: Bus, session: SessionKey, wanted: str, after: int, limit: int) -> Timeline:
    """Return the records on a filter after sequence `after`, as they are stored."""
    found, has_more = await read_page(bus, session.stream, [wanted], after + 1, limit)
    return Timeline(
        session_key=str(session),
        records=tuple(_record(session, message) for message in found),
        next_after=found[-1].seq if has_more else None,
    )


def _record(session: SessionKey, message: Message) -> TimelineRecord:
    tail = message.subject.removeprefix(session.root + ".")
    kind = tail.rpartition(".")[0] if tail.startswith(_WITH_ID) else tail.partition("-")[0]
    return TimelineRecord(
        seq=message.seq,
        kind=kind,
        data=json_of(message.data),
        trace=message.header(trace.HEADER),
    )


def json_of(data: bytes) -> Any:
    """Return the record as it is; bytes that are no JSON as base64, to be looked at."""
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {"unreadable": base64.b64encode(data).decode()}
    return msgspec.Raw(data)


async def origin_of(bus: Bus, session: SessionKey) -> Forked | None:
    """Return what a conversation was forked from; None: it's no fork, or its first order is gone.

    Raises:
        Unavailable: the broker can't tell.
    """
    return forked_in(await bus.get_next(session.stream, session.in_event("control"), 1))


def forked_in(first: Message | None) -> Forked | None:
    """Return what a conversation was forked from, if that is the order that began it."""
    try:
        event = None if first is None else decode_event(first.data)
    except InvalidInput:
        return None
    fork = event.payload.fork if isinstance(event, Control) else None
    return None if fork is None else Forked(session_key=fork.session, turn=fork.turn)


# ---------------------------------------------------------------- timers


async def timers(bus: Bus, session: SessionKey) -> TimerList:
    """Return the open timers, without what a newer user message has voided already."""
    turn, newest = await asyncio.gather(
        bus.get_last(session.stream, session.turns), bus.get_last(session.stream, session.in_user)
    )
    left: list[OpenTimer] = []
    if turn is not None:
        left = open_timers(decode_turn(turn.data).state, newest.seq if newest else 0)
    return TimerList(session_key=str(session), timers=tuple(_view(timer) for timer in left))


def _view(timer: OpenTimer) -> TimerView:
    follow_up = timer.follow_up
    return TimerView(
        timer_id=timer.timer_id,
        fire_at=follow_up.fire_at,
        reason=follow_up.reason,
        keep=follow_up.keep,
        generation=follow_up.generation,
        message=follow_up.message,
        held_from=follow_up.held_from,
    )
