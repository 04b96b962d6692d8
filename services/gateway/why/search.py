"""From an id to a place in the log: whose session it is, and which record.

An id of a message, of a tool call that somebody took up, of a session that an effect started, of a
request, a job, a task or a grant is part of a subject, so the broker finds it at once. The ids of
signals and of dead letters name a record by its sequence. All others (an event's, a turn's, a
timer's, a memory's) stand inside records only: the newest of the caller's are looked through, in
windows that grow, up to `SCAN_RECORDS_MAX` and `SCAN_BYTES_MAX`; naming the session makes that
reach much further. Where that finds nothing, what was met that begins so is meant (:mod:`.sought`),
and the newest of the board and of MEMORIES are looked through for it, within the same limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from vigil.board.entries import last_of
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Approval,
    CancelTimer,
    Control,
    Job,
    ScheduleTimer,
    SendMessage,
    TimerFired,
    TimetableRow,
    Turn,
    decode_board,
    decode_event,
    decode_turn,
)
from vigil.contracts.base import NEVER
from vigil.contracts.codec import decode_past
from vigil.contracts.session_kinds import started_kinds
from vigil.errors import InvalidInput
from vigil.past import places
from vigil.subjects import Scope, SessionKey, board_of

from ..http.problem import Problem
from . import kept, stories
from .entries import KeptFact
from .facts import Fact, LetterFact, TurnFact
from .reader import Budget, newest_first, to_fact
from .sought import SearchScope, SoughtId
from .story import Asking, Story, within

T = TypeVar("T")
BOARD: Final = "BOARD"
MEMORIES: Final = "MEMORIES"
SCAN_RECORDS_MAX: Final = 50_000
SCAN_BYTES_MAX: Final = 64 * 1024 * 1024
_EFFECT: Final = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)
_MEMORY: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SEQ: Final = re.compile(r"seq-(\d{1,15})", re.ASCII)
_SIGNAL: Final = re.compile(
    r"(SESSIONS(?:_\d{1,2})?|SYSTEM|BOARD)-(\d{1,15})-([a-z_]+\.[a-z_]+)(?:-(\d{1,4}))?", re.ASCII
)
_HOLDING: Final = ("in.>", "past.said.*", "*")  # events, what was imported, turns
_LETTER: Final = re.compile(r"(?:[a-z]+-)?(SESSIONS(?:_\d{1,2})?|SYSTEM)-(\d{1,15})", re.ASCII)


class StoryPlace(msgspec.Struct, frozen=True):
    """A session, and the story to tell of it."""

    key: SessionKey
    asking: Asking[Story]
    kind: str = ""
    """What the id turned out to be; empty: what the story is about."""
    others: tuple[SessionKey, ...] = ()
    """Sessions in which something else has that name, the newest first."""
    id: str = ""
    """The whole id of what was found."""


async def find(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace:
    """Find what an id names, or the one that begins so or a person calls so.

    Raises:
        Problem: 404, nothing of the caller's is known by it; 422, several sessions have it.
        InvalidInput: several ids begin so.
    """
    sought = SoughtId(id_)
    place = await _searched(bus, scope, sought)
    if place is None and sought.may_begin:
        await _met(bus, scope, sought)
        if (whole := sought.whole()) is not None:
            sought = SoughtId(whole, is_whole=True)
            place = await _searched(bus, scope, sought)
    if place is not None:
        return replace(place, id=sought.id)
    where = f"in {scope.session}" if scope.session else "among your newest records"
    hint = "" if scope.session else "; if it is older, name its session (session=, --session)"
    raise Problem(404, f"nothing is known by that id {where}{hint}")


async def _searched(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    for search in _SEARCHES:
        place = await search(bus, scope, sought)
        if place is not None:
            return place
    return None


async def _by_sequence(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    if (named := _SEQ.fullmatch(sought.id)) is not None:
        return await _at_any(bus, scope, int(named[1]))
    if (named := _SIGNAL.fullmatch(sought.id)) is None:
        return None
    if named[1] == BOARD:
        return await _on_board_at(bus, scope, int(named[2]))
    found = await _record(bus, scope, named[1], int(named[2]))
    if found is None:
        return None
    key, fact = found
    return StoryPlace(key, stories.of_signal(key, fact, named[3], int(named[4] or 1)), "signal")


async def _at_any(bus: Bus, scope: SearchScope, seq: int) -> StoryPlace | None:
    """Look at a sequence in each part of the log of the sessions that are meant."""
    key, layout = scope.session, await bus.layout()
    logs = layout.logs if key is None else (await bus.log_of(key),)
    places = [await _at(bus, scope, log, seq, "") for log in logs]
    found = [place for place in places if place is not None]
    if len(found) > 1:
        keys = ", ".join(str(place.key) for place in found)
        detail = f"{len(found)} sessions have a record of that number; name the session: {keys}"
        raise Problem(422, detail, field="session")
    return found[0] if found else None


async def _at(bus: Bus, scope: SearchScope, stream: str, seq: int, kind: str) -> StoryPlace | None:
    found = await _record(bus, scope, stream, seq)
    return None if found is None else StoryPlace(found[0], stories.of_record(*found), kind)


async def _record(
    bus: Bus, scope: SearchScope, stream: str, seq: int
) -> tuple[SessionKey, Fact] | None:
    """Return the record at a sequence, if it may be told about."""
    message = await bus.get(stream, seq) if seq else None
    if message is None:
        return None
    key = SessionKey.of_subject(message.subject)
    return (key, to_fact(message)) if scope.includes(key) else None


async def _by_effect(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    """Ask for the subjects that end in the id; it was checked, so it can't be a wildcard."""
    if not _EFFECT.fullmatch(sought.id):
        return None
    for stream, root in scope.roots(await bus.layout()):
        for what in ("out.said", "receipt", "send", "call"):
            message = await bus.get_last(stream, f"{root}.{what}.{sought.id}")
            if message is not None:
                key = SessionKey.of_subject(message.subject)
                asking = stories.of_record(key, to_fact(message))
                return StoryPlace(key, asking, "" if what == "call" else "message")
    return None


async def _by_session(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    """Look for a session that was started by an effect of that id."""
    if not _EFFECT.fullmatch(sought.id):
        return None
    for one in scope.owners:
        for kind in started_kinds():
            where = f"system.{one.agent}.{one.owner}._{kind}-{sought.id}.in.control"
            message = await bus.get_last("SYSTEM", where)
            if message is not None:
                key = SessionKey.of_subject(message.subject)
                return StoryPlace(key, stories.of_session(key, sought.id, kind), kind)
    return None


# ---------------------------------------------------------------- the board


async def _on_board(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    """Look for a request, a job, a task or a grant of that id."""
    if not _EFFECT.fullmatch(sought.id):
        return None
    message = await last_of(bus, scope.nearest or scope.owners, "*", sought.id)
    return None if message is None else await _entity(bus, scope, message)


async def _on_board_at(bus: Bus, scope: SearchScope, seq: int) -> StoryPlace | None:
    message = await bus.get(BOARD, seq) if seq else None
    return None if message is None else await _entity(bus, scope, message)


async def _entity(bus: Bus, scope: SearchScope, message: Message) -> StoryPlace | None:
    try:
        entity = decode_board(message.data).entity
    except InvalidInput:
        return None
    kind = str(entity.__struct_config__.tag)
    if isinstance(entity, Approval | Job):
        key = SessionKey.parse(entity.session_key)
        is_job = isinstance(entity, Job)
        story = stories.of_session(key, entity.id, kind) if is_job else None
        found_story = key, story or stories.of_request(key, entity.id)
    else:
        found = await kept.story_of(bus, entity)
        if found is None:
            if isinstance(entity, TimetableRow) and scope.session is None:
                raise Problem(404, f"no run of the row {entity.name!r} is recorded")
            return None
        kind, found_story = found
    return StoryPlace(*found_story, kind) if scope.includes(found_story[0]) else None


# ---------------------------------------------------------------- memories


async def _in_memory(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    """Look for a memory, back to where it was saved, and for the event that it was made of."""
    if not _MEMORY.fullmatch(sought.id):
        return None
    found: list[tuple[Fact, Scope]] = []

    def matches(message: Message) -> tuple[Fact, Scope] | None:
        fact = kept.memory_fact(message, sought.id) if sought.needle in message.data else None
        return None if fact is None else (fact, Scope.of_subject(message.subject))

    filters = [one.record(op) for one in scope.owners for op in kept.MEMORY_OPS]
    async with aclosing(newest_first(bus, MEMORIES, filters, _budget(1), matches)) as records:
        async for one in records:
            found.insert(0, one)
            if kept.is_saved(one[0]):
                break
    return await _remembered(bus, scope, sought.id, found) if found else None


async def _remembered(
    bus: Bus, scope: SearchScope, id_: str, found: Sequence[tuple[Fact, Scope]]
) -> StoryPlace | None:
    whose = found[0][1]
    session, event_id = kept.origin(found[0][0])
    key = SessionKey.parse(session) if session else SessionKey(whose.owner, whose.agent, "")
    if not scope.includes(key):
        return None
    made = None
    if session and event_id:
        place = await _by_content(
            bus, SearchScope((whose,), key), SoughtId(event_id, is_whole=True)
        )
        made = None if place is None else within(place.key, place.asking)
    facts = [fact for fact, _ in found]
    if isinstance(saved := facts[0].body, KeptFact):
        facts = [*await kept.deleted_fact(bus, session, saved.at), *facts]
    return StoryPlace(key, stories.of_entries(id_, "memory", facts, made), "memory")


def _budget(parts: int) -> Budget:
    """Return what one of so many parts of a search may read."""
    return Budget(SCAN_RECORDS_MAX // parts, SCAN_BYTES_MAX // parts)


# ---------------------------------------------------------------- dead letters


async def _by_letter(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    def is_it(message: Message) -> Fact | None:
        fact = to_fact(message) if sought.needle in message.data else None
        if fact is None or not isinstance(fact.body, LetterFact):
            return None
        return fact if sought.is_among(fact.body.id) else None

    async for fact in newest_first(bus, "DEAD", scope.letters, Budget(), is_it):
        assert isinstance(fact.body, LetterFact)  # noqa: S101 - only those are let through
        key = SessionKey.of_subject(fact.subject)
        asking = stories.of_letter(key, fact, fact.body.effect_id, fact.body.seq)
        return StoryPlace(key, asking, "dead_letter")
    match = _LETTER.fullmatch(sought.id)  # the letter is gone; what died may still be there
    return await _at(bus, scope, match[1], int(match[2]), "dead_letter") if match else None


# ---------------------------------------------------------------- ids inside records


class _Match(msgspec.Struct, frozen=True):
    """A record that holds the id, and what it is there; small, for many may be held."""

    key: SessionKey
    seq: int
    timer: tuple[str, int] | None = None
    """The id is this timer's, of this generation."""
    is_send: bool = False
    is_weak: bool = False
    """It only names the id, as an order to cancel it does."""
    at: datetime = NEVER
    """Of a timer: when that was stored."""


async def _by_content(bus: Bus, scope: SearchScope, sought: SoughtId) -> StoryPlace | None:
    timers: dict[SessionKey, _Match] = {}
    weak: _Match | None = None

    def matches(message: Message) -> _Match | None:
        return _match(message, sought) if sought.needle in message.data else None

    roots = scope.roots(await bus.layout())
    for stream, root in roots:
        filters, budget = [f"{root}.{of}" for of in _HOLDING], _budget(len(roots))
        async with aclosing(newest_first(bus, stream, filters, budget, matches)) as found:
            async for match in found:
                if match.is_weak:
                    weak = weak or match
                elif match.timer is None or scope.session is not None:
                    return await _place(bus, match, sought.id)
                else:
                    # A name like "tea" may well be that of several: they are all looked for.
                    timers.setdefault(match.key, match)
    named = sorted(timers.values(), key=lambda one: one.at, reverse=True)
    best = named[0] if named else weak
    place = None if best is None else await _place(bus, best, sought.id)
    return None if place is None else replace(place, others=tuple(one.key for one in named[1:]))


def _match(message: Message, sought: SoughtId) -> _Match | None:
    """Return what the id is in that record, if it is anything."""
    key = SessionKey.of_subject(message.subject)
    sought.is_among(key.thread.partition("-")[2] if key.is_system else None)
    try:
        if key.is_turn(message.subject):
            return _in_turn(key, message.seq, decode_turn(message.data), sought)
        if places.is_past(message.subject):
            said = decode_past(message.data)
            return _Match(key, message.seq) if sought.is_among(said.id) else None
        event = decode_event(message.data)
    except InvalidInput:
        return None
    if isinstance(event, TimerFired) and sought.is_among(timer := event.payload.timer_id):
        return _Match(key, message.seq, (timer, event.payload.generation), at=event.created_at)
    if sought.is_among(event.id, event.caused_by):
        return _Match(key, message.seq)
    is_order = isinstance(event, Control) and sought.is_among(event.payload.timer_id)
    return _Match(key, message.seq, is_weak=True) if is_order else None


def _in_turn(key: SessionKey, seq: int, turn: Turn, sought: SoughtId) -> _Match | None:
    if sought.is_among(turn.id):
        return _Match(key, seq)
    for effect in turn.effects:
        if not isinstance(effect, ScheduleTimer | CancelTimer):
            if sought.is_among(effect.id):
                return _Match(key, seq, is_send=isinstance(effect, SendMessage))
        elif sought.is_among(effect.id, effect.payload.timer_id):
            timer = effect.payload.timer_id, effect.payload.generation
            return _Match(key, seq, timer, at=turn.created_at)
    return None


async def _place(bus: Bus, match: _Match, id_: str) -> StoryPlace | None:
    key = match.key
    if match.timer is not None:
        return StoryPlace(key, stories.of_timer(key, *match.timer), "timer")
    message = await bus.get_of(key, match.seq)
    if message is None:
        return None
    fact = to_fact(message)
    if match.is_send:
        return StoryPlace(key, stories.of_send(key, id_, fact), "message")
    kinds = {TurnFact: "turn", KeptFact: "message"}
    return StoryPlace(key, stories.of_record(key, fact), kinds.get(type(fact.body), "event"))


# ---------------------------------------------------------------- beginnings


async def _met(bus: Bus, scope: SearchScope, sought: SoughtId) -> None:
    """Note what begins so on the board and in MEMORIES; of the log it was noted on the way."""

    def note(message: Message) -> None:
        if sought.needle in message.data:
            sought.is_among(*kept.ids(message))
        sought.note_called(message.subject)

    memories = [one.record(op) for one in scope.owners for op in kept.MEMORY_OPS]
    for stream, filters in {BOARD: [*map(board_of, scope.owners)], MEMORIES: memories}.items():
        async for _ in newest_first(bus, stream, filters, _budget(1), note):
            pass


_SEARCHES: Final = (
    _by_sequence,
    _by_effect,
    _by_session,
    _on_board,
    _in_memory,
    _by_letter,
    _by_content,
)
