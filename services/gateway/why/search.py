"""From an id to a place in the log: whose session it is, and which record.

An id of a message, of a tool call that somebody took up, of a session that an effect started, of a
request, a job, a task or a grant is part of a subject, so the broker finds it at once. The ids of
signals and of dead letters name a record by its sequence. All others (an event's, a turn's, a
timer's, a memory's) stand inside records only: the newest of the caller's are looked through, in
windows that grow, up to `SCAN_RECORDS_MAX` and `SCAN_BYTES_MAX`; naming the session makes that
reach much further.
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
    Turn,
    decode_board,
    decode_event,
    decode_turn,
)
from vigil.contracts.base import NEVER
from vigil.contracts.codec import decode_past
from vigil.contracts.session_kinds import started_kinds
from vigil.errors import InvalidInput
from vigil.layout import LogLayout
from vigil.past import places
from vigil.subjects import Scope, SessionKey, dead_of

from ..http.problem import Problem
from . import kept, stories
from .entries import KeptFact
from .facts import Fact, LetterFact, TurnFact
from .reader import Budget, newest_first, to_fact
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


class SearchScope(msgspec.Struct, frozen=True):
    """Whose records are looked at (of the board `nearest` first): a person's, a session's, all."""

    whose: tuple[Scope, ...]
    session: SessionKey | None = None
    nearest: tuple[Scope, ...] = ()

    def includes(self, key: SessionKey) -> bool:
        """Return whether a record of that session may be told about."""
        if self.session is not None:
            return key == self.session
        return any(one.covers(key) for one in self.whose)

    def roots(self, layout: LogLayout) -> tuple[tuple[str, str], ...]:
        """Return streams, and what replaces ``{K}`` in a filter there."""
        if self.session is not None:
            return ((self.session.stream, self.session.root),)
        logs = [(log, "session") for log in layout.logs] + [("SYSTEM", "system")]
        return tuple(
            (log, f"{kind}.{one.agent}.{one.owner}.*") for log, kind in logs for one in self.whose
        )

    @property
    def owners(self) -> tuple[Scope, ...]:
        """Whose things besides records of sessions are looked at."""
        return self.whose if self.session is None else (self.session.scope,)

    @property
    def letters(self) -> tuple[str, ...]:
        """The filters of the dead letters."""
        if self.session is not None:
            key = self.session
            return (f"dead.*.{key.agent}.{key.user}.{key.thread}",)
        return tuple(map(dead_of, self.whose))


class StoryPlace(msgspec.Struct, frozen=True):
    """A session, and the story to tell of it."""

    key: SessionKey
    asking: Asking[Story]
    kind: str = ""
    """What the id turned out to be; empty: what the story is about."""
    others: tuple[SessionKey, ...] = ()
    """Sessions in which something else has that name, the newest first."""


async def find(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace:
    """Find what an id names.

    Raises:
        Problem: 404, nothing of the caller's is known by it; 422, several sessions have it.
    """
    for search in _SEARCHES:
        place = await search(bus, scope, id_)
        if place is not None:
            return place
    where = f"in {scope.session}" if scope.session else "among your newest records"
    hint = "" if scope.session else "; if it is older, name its session (session=, --session)"
    raise Problem(404, f"nothing is known by that id {where}{hint}")


async def _by_sequence(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    if (named := _SEQ.fullmatch(id_)) is not None:
        return await _at_any(bus, scope, int(named[1]))
    if (named := _SIGNAL.fullmatch(id_)) is None:
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


async def _by_effect(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    """Ask for the subjects that end in the id; it was checked, so it can't be a wildcard."""
    if not _EFFECT.fullmatch(id_):
        return None
    for stream, root in scope.roots(await bus.layout()):
        for what in ("out.said", "receipt", "send", "call"):
            message = await bus.get_last(stream, f"{root}.{what}.{id_}")
            if message is not None:
                key = SessionKey.of_subject(message.subject)
                asking = stories.of_record(key, to_fact(message))
                return StoryPlace(key, asking, "" if what == "call" else "message")
    return None


async def _by_session(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    """Look for a session that was started by an effect of that id."""
    if not _EFFECT.fullmatch(id_):
        return None
    for one in scope.owners:
        for kind in started_kinds():
            where = f"system.{one.agent}.{one.owner}._{kind}-{id_}.in.control"
            message = await bus.get_last("SYSTEM", where)
            if message is not None:
                key = SessionKey.of_subject(message.subject)
                return StoryPlace(key, stories.of_session(key, id_, kind), kind)
    return None


# ---------------------------------------------------------------- the board


async def _on_board(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    """Look for a request, a job, a task or a grant of that id."""
    if not _EFFECT.fullmatch(id_):
        return None
    message = await last_of(bus, scope.nearest or scope.owners, "*", id_)
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
            return None
        kind, found_story = found
    return StoryPlace(*found_story, kind) if scope.includes(found_story[0]) else None


# ---------------------------------------------------------------- memories


async def _in_memory(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    """Look for a memory, back to where it was saved, and for the event that it was made of."""
    if not _MEMORY.fullmatch(id_):
        return None
    needle, found = id_.encode(), list[tuple[Fact, Scope]]()

    def matches(message: Message) -> tuple[Fact, Scope] | None:
        fact = kept.memory_fact(message, id_) if needle in message.data else None
        return None if fact is None else (fact, Scope.of_subject(message.subject))

    filters = [one.record(op) for one in scope.owners for op in kept.MEMORY_OPS]
    async with aclosing(newest_first(bus, MEMORIES, filters, _budget(1), matches)) as records:
        async for one in records:
            found.insert(0, one)
            if kept.is_saved(one[0]):
                break
    return await _remembered(bus, scope, id_, found) if found else None


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
        place = await _by_content(bus, SearchScope((whose,), key), event_id)
        made = None if place is None else within(place.key, place.asking)
    facts = [fact for fact, _ in found]
    if isinstance(saved := facts[0].body, KeptFact):
        facts = [*await kept.deleted_fact(bus, session, saved.at), *facts]
    return StoryPlace(key, stories.of_entries(id_, "memory", facts, made), "memory")


def _budget(parts: int) -> Budget:
    """Return what one of so many parts of a search may read."""
    return Budget(SCAN_RECORDS_MAX // parts, SCAN_BYTES_MAX // parts)


# ---------------------------------------------------------------- dead letters


async def _by_letter(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    needle = id_.encode()

    def is_it(message: Message) -> Fact | None:
        fact = to_fact(message) if needle in message.data else None
        is_named = fact is not None and isinstance(fact.body, LetterFact) and fact.body.id == id_
        return fact if is_named else None

    async for fact in newest_first(bus, "DEAD", scope.letters, Budget(), is_it):
        assert isinstance(fact.body, LetterFact)  # noqa: S101 - only those are let through
        key = SessionKey.of_subject(fact.subject)
        asking = stories.of_letter(key, fact, fact.body.effect_id, fact.body.seq)
        return StoryPlace(key, asking, "dead_letter")
    match = _LETTER.fullmatch(id_)  # the letter is gone; what died may still be there
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


async def _by_content(bus: Bus, scope: SearchScope, id_: str) -> StoryPlace | None:
    timers: dict[SessionKey, _Match] = {}
    weak: _Match | None = None
    needle = msgspec.json.encode(id_)[1:-1]

    def matches(message: Message) -> _Match | None:
        return _match(message, id_) if needle in message.data else None

    roots = scope.roots(await bus.layout())
    for stream, root in roots:
        filters, budget = [f"{root}.{of}" for of in _HOLDING], _budget(len(roots))
        async with aclosing(newest_first(bus, stream, filters, budget, matches)) as found:
            async for match in found:
                if match.is_weak:
                    weak = weak or match
                elif match.timer is None or scope.session is not None:
                    return await _place(bus, match, id_)
                else:
                    # A name like "tea" may well be that of several: they are all looked for.
                    timers.setdefault(match.key, match)
    named = sorted(timers.values(), key=lambda one: one.at, reverse=True)
    best = named[0] if named else weak
    place = None if best is None else await _place(bus, best, id_)
    return None if place is None else replace(place, others=tuple(one.key for one in named[1:]))


def _match(message: Message, id_: str) -> _Match | None:
    """Return what the id is in that record, if it is anything."""
    key = SessionKey.of_subject(message.subject)
    try:
        if key.is_turn(message.subject):
            return _in_turn(key, message.seq, decode_turn(message.data), id_)
        if places.is_past(message.subject):
            return _Match(key, message.seq) if decode_past(message.data).id == id_ else None
        event = decode_event(message.data)
    except InvalidInput:
        return None
    if isinstance(event, TimerFired) and event.payload.timer_id == id_:
        return _Match(key, message.seq, (id_, event.payload.generation), at=event.created_at)
    if id_ in (event.id, event.caused_by):
        return _Match(key, message.seq)
    is_order = isinstance(event, Control) and event.payload.timer_id == id_
    return _Match(key, message.seq, is_weak=True) if is_order else None


def _in_turn(key: SessionKey, seq: int, turn: Turn, id_: str) -> _Match | None:
    if turn.id == id_:
        return _Match(key, seq)
    for effect in turn.effects:
        if isinstance(effect, SendMessage):
            if effect.id == id_:
                return _Match(key, seq, is_send=True)
        elif not isinstance(effect, ScheduleTimer | CancelTimer):
            if effect.id == id_:
                return _Match(key, seq)
        elif id_ in (effect.id, effect.payload.timer_id):
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


_SEARCHES: Final = (
    _by_sequence,
    _by_effect,
    _by_session,
    _on_board,
    _in_memory,
    _by_letter,
    _by_content,
)
