"""What to fire, in which order, and what a turn asks for. Pure: time comes in as an argument.

The truth about what counts is the session's fold in the cortex. So this part must never lose
a timer and never fire one early; that it names one twice after a crash is harmless.

A timer is one subject of the stream TIMERS, which is its name here too: the pair
(timer_id, generation) alone is not unique among sessions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from vigil.contracts import (
    CancelTimer,
    Control,
    ControlPayload,
    ScheduleTimer,
    TimerFired,
    TimerPayload,
    TimerRecord,
    decode_timer,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey, token_of

BACKSTOP_DELAY_S: Final = 2.0
"""The broker fires this long after `fire_at`, so only when no scheduler was there."""
CLOCK_SLACK_S: Final = 0.5
"""How far the broker's clock may be ahead before a due message has to come by itself."""
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""The broker counts nanoseconds in 64 bits: the year 1 never fired, 2262 fired at once."""
DONE_MAX: Final = 20_000
_DEAD_HEAP_ITEMS_MAX: Final = 1000


class PendingTimer(msgspec.Struct, frozen=True, kw_only=True):
    """A pending timer. `subject` is where its schedule lies in TIMERS."""

    subject: str
    due_subject: str
    key: SessionKey
    record: TimerRecord
    traceparent: str | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        """Timers of one session are promoted in this order (SPEC S-8)."""
        return self.record.fire_at, self.record.timer_id

    @property
    def is_follow_up(self) -> bool:
        return self.record.kind == "follow_up"

    def is_outdated(self, changed_at: Callable[[Scope], datetime]) -> bool:
        """Whether its person changed the hours by which it's put off."""
        hours_at = self.record.hours_at
        return hours_at is not None and hours_at < changed_at(self.key.scope)


class _Queue:
    """Entries of one kind, by order. What was dropped stays in the heap until it surfaces."""

    def __init__(self) -> None:
        self.live: dict[str, PendingTimer] = {}
        self._heap: list[tuple[datetime, str, str]] = []

    def push(self, entry: PendingTimer) -> None:
        self.live[entry.subject] = entry
        heapq.heappush(self._heap, (*entry.order, entry.subject))

    def drop(self, subject: str) -> PendingTimer | None:
        entry = self.live.pop(subject, None)
        if len(self._heap) > 2 * len(self.live) + _DEAD_HEAP_ITEMS_MAX:
            self._heap = [(*e.order, e.subject) for e in self.live.values()]
            heapq.heapify(self._heap)
        return entry

    def head(self) -> PendingTimer | None:
        while self._heap:
            fire_at, _, subject = self._heap[0]
            entry = self.live.get(subject)
            if entry is not None and entry.record.fire_at == fire_at:
                return entry
            heapq.heappop(self._heap)
        return None

    def pop(self, entry: PendingTimer) -> None:
        heapq.heappop(self._heap)
        del self.live[entry.subject]


class Agenda:
    """Every pending timer, in due order.

    An entry is pending, then taken (by :meth:`due`), then settled. A dropped or replaced entry
    is neither pending nor taken, so whoever holds it finds out with :meth:`is_taken`.
    """

    def __init__(self) -> None:
        self._follow_ups = _Queue()
        self._deadlines = _Queue()
        self._taken: dict[str, PendingTimer] = {}
        self._done: dict[str, datetime] = {}

    def __len__(self) -> int:
        """Return how many are pending or taken."""
        return len(self._follow_ups.live) + len(self._deadlines.live) + len(self._taken)

    def add(self, entry: PendingTimer) -> bool:
        """Make it pending, in place of what its subject held; return whether it is new."""
        if self.is_settled(entry):
            return False
        known = self._find(entry.subject)
        if known is not None and known.order == entry.order:
            return False
        self.drop(entry.subject)
        self._queue_of(entry).push(entry)
        return True

    def drop(self, subject: str) -> PendingTimer | None:
        """Forget a timer, pending or taken; return it if it was known."""
        taken = self._taken.pop(subject, None)
        if taken is not None:
            return taken
        return self._follow_ups.drop(subject) or self._deadlines.drop(subject)

    def due(self, now: datetime, *, is_paused: bool) -> list[PendingTimer]:
        """Take what is due at `now`, in order of (fire_at, timer_id).

        While paused, follow-ups stay pending (SPEC S-11).
        """
        entries: list[PendingTimer] = []
        while (head := self._head(is_paused)) is not None and head.record.fire_at <= now:
            self._queue_of(head).pop(head)
            self._taken[head.subject] = head
            entries.append(head)
        return entries

    def outdated(
        self, changed_at: Callable[[Scope], datetime], *, is_paused: bool
    ) -> list[PendingTimer]:
        """Take, however early, what is put off by hours that were `changed_at` a later time."""
        queues = (self._deadlines,) if is_paused else (self._deadlines, self._follow_ups)
        live = [entry for queue in queues for entry in queue.live.values()]
        found = [entry for entry in live if entry.is_outdated(changed_at)]
        for entry in found:
            self._queue_of(entry).drop(entry.subject)
            self._taken[entry.subject] = entry
        return found

    def next_at(self, *, is_paused: bool) -> datetime | None:
        """Return when the next pending timer is due; None if there is none."""
        head = self._head(is_paused)
        return None if head is None else head.record.fire_at

    def planned_at(self) -> datetime | None:
        """Return when the newest that is pending was planned, by the clock of then."""
        live = (*self._follow_ups.live.values(), *self._deadlines.live.values())
        return max((at for one in live if (at := one.record.planned_at)), default=None)

    def is_taken(self, entry: PendingTimer) -> bool:
        """Whether `entry` is still to be promoted by whoever took it."""
        return self._taken.get(entry.subject) is entry

    def give_back(self, entry: PendingTimer) -> None:
        """Make a taken entry pending again, unless it was dropped meanwhile."""
        if self.is_taken(entry):
            del self._taken[entry.subject]
            self._queue_of(entry).push(entry)

    def settle(self, entry: PendingTimer) -> None:
        """Remember that its event is stored, so that a late repeat is known as one."""
        if self.is_taken(entry):
            del self._taken[entry.subject]
        self._done.pop(entry.subject, None)
        self._done[entry.subject] = entry.record.fire_at
        if len(self._done) > DONE_MAX:
            del self._done[next(iter(self._done))]

    def is_settled(self, entry: PendingTimer) -> bool:
        """Whether the event of this timer is known to be stored."""
        return self._done.get(entry.subject) == entry.record.fire_at

    def sessions_with_follow_ups(self) -> list[SessionKey]:
        """Return the sessions that have a pending follow-up, each once, sorted."""
        return sorted({entry.key for entry in self._follow_ups.live.values()})

    def forget(self, is_gone: Callable[[SessionKey], bool]) -> None:
        """Forget the timers of every session that `is_gone`."""
        live = (*self._follow_ups.live.values(), *self._deadlines.live.values())
        for entry in (*live, *self._taken.values()):
            if is_gone(entry.key):
                self.drop(entry.subject)

    def is_known(self, subject: str) -> bool:
        """Whether the timer of that subject is pending or taken."""
        return self._find(subject) is not None

    def _find(self, subject: str) -> PendingTimer | None:
        return (
            self._taken.get(subject)
            or self._follow_ups.live.get(subject)
            or self._deadlines.live.get(subject)
        )

    def _queue_of(self, entry: PendingTimer) -> _Queue:
        return self._follow_ups if entry.is_follow_up else self._deadlines

    def _head(self, is_paused: bool) -> PendingTimer | None:
        deadline = self._deadlines.head()
        follow_up = None if is_paused else self._follow_ups.head()
        if deadline is None or follow_up is None:
            return deadline or follow_up
        return min(deadline, follow_up, key=lambda e: (*e.order, e.subject))


# ---------------------------------------------------------------- what a message asks for


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """A timer that a turn voids."""

    subject: str
    due_subject: str


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A timer that a turn asks for."""

    effect_id: str
    entry: PendingTimer


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn changes about timers. The subjects of both lists differ."""

    cancelled: tuple[Cancelled, ...]
    scheduled: tuple[Scheduled, ...]


def session_of(subject: str) -> SessionKey:
    """Return the session of a subject, with every part checked.

    Raises:
        InvalidInput: it has none; such a subject must not get into another one.
    """
    try:
        key = SessionKey.of_subject(subject)
    except ValueError as error:
        raise InvalidInput("subject", "names no session") from error
    return SessionKey.of(key.user, key.agent, key.thread)


def changes_of(subject: str, data: bytes, traceparent: str | None) -> Changes:
    """Read a turn's timer effects. Of several on one pair only the last counts.

    Raises:
        InvalidInput: it is no turn, or not one of the session that `subject` names.
    """
    key = session_of(subject)
    turn = decode_turn(data)
    if not key.is_turn(subject) or turn.session_key != str(key):
        raise InvalidInput("turn", f"is not one of {key}")
    last: dict[str, Cancelled | Scheduled] = {}
    for effect in (e for e in turn.effects if isinstance(e, ScheduleTimer | CancelTimer)):
        pair = effect.payload.timer_id, effect.payload.generation
        if isinstance(effect, CancelTimer):
            last[key.timer(*pair)] = Cancelled(subject=key.timer(*pair), due_subject=key.due(*pair))
        else:
            entry = entry_at(key, _record(key, effect, turn.created_at), traceparent)
            last[entry.subject] = Scheduled(effect_id=effect.id, entry=entry)
    return Changes(
        cancelled=tuple(c for c in last.values() if isinstance(c, Cancelled)),
        scheduled=tuple(c for c in last.values() if isinstance(c, Scheduled)),
    )


def is_overtaken_by(subject: str, later: Iterable[Changes]) -> bool:
    """Whether one of these changes that timer, too: cancels it, or plans it anew."""
    return any(
        subject in {one.subject for one in changes.cancelled}
        or subject in {one.entry.subject for one in changes.scheduled}
        for changes in later
    )


def _record(key: SessionKey, effect: ScheduleTimer, planned_at: datetime) -> TimerRecord:
    return TimerRecord(
        session_key=str(key),
        timer_id=effect.payload.timer_id,
        generation=effect.payload.generation,
        fire_at=_utc(effect.payload.fire_at),
        kind=effect.payload.kind,
        caused_by=effect.id,
        hours_at=effect.payload.hours_at,
        planned_at=_utc(planned_at),
    )


def _utc(at: datetime) -> datetime:
    """Convert to UTC; at the ends of the calendar, to the end."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
        return last if at > LATEST else first


def entry_at(key: SessionKey, record: TimerRecord, traceparent: str | None) -> PendingTimer:
    """Return the entry of a timer, under the subjects that are its own."""
    pair = record.timer_id, record.generation
    return PendingTimer(
        subject=key.timer(*pair),
        due_subject=key.due(*pair),
        key=key,
        record=record,
        traceparent=traceparent,
    )


def entry_of(subject: str, data: bytes, traceparent: str | None) -> PendingTimer:
    """Read a schedule, or what the broker made of one under ``due.``.

    Raises:
        InvalidInput: it is no timer, or lies under a subject that isn't its own.
    """
    record = decode_timer(data)
    entry = entry_at(session_of(subject), record, traceparent)
    if subject not in (entry.subject, entry.due_subject) or record.session_key != str(entry.key):
        raise InvalidInput("timer", "lies under another timer's subject")
    return entry


# ---------------------------------------------------------------- what to write


def backstop_at(fire_at: datetime) -> datetime:
    """Return when the broker is to fire by itself.

    >>> backstop_at(datetime(2126, 1, 1, tzinfo=UTC)).isoformat()
    '2126-01-01T00:00:02+00:00'
    >>> backstop_at(datetime.max.replace(tzinfo=UTC)).year
    2200
    """
    return min(max(fire_at, EARLIEST), LATEST) + timedelta(seconds=BACKSTOP_DELAY_S)


def schedule_headers(entry: PendingTimer) -> dict[str, str]:
    """Return the headers that make a message a schedule (NATS ADR-51)."""
    at = _utc(backstop_at(entry.record.fire_at))
    return {
        "Nats-Schedule": f"@at {at.replace(tzinfo=None).isoformat()}Z",
        "Nats-Schedule-Target": entry.due_subject,
    }


def may_be_fired(fire_at: datetime, now: datetime) -> bool:
    """Whether the broker may have fired this schedule already, so a due message may exist."""
    return backstop_at(fire_at) - timedelta(seconds=CLOCK_SLACK_S) <= now


def fired(entry: PendingTimer, now: datetime) -> TimerFired:
    """Return the event of a due timer. Its id is the same however often it is made.

    The id covers the session: the broker drops repeats of an id in a whole stream, and two
    sessions may well have a timer of the same name and generation.
    """
    record = entry.record
    parts = record.session_key, record.timer_id, str(record.generation), record.fire_at.isoformat()
    return TimerFired(
        id=f"timer-{token_of(*parts)}",
        session_key=record.session_key,
        created_at=now,
        caused_by=record.caused_by,
        payload=TimerPayload(
            timer_id=record.timer_id,
            generation=record.generation,
            fire_at=record.fire_at,
            kind=record.kind,
        ),
    )


def cleared(key: SessionKey, control_id: str, now: datetime) -> Control:
    """Return the event that voids a session's follow-ups at a restart."""
    return Control(
        id=control_id,
        session_key=str(key),
        created_at=now,
        payload=ControlPayload(op="clear_follow_ups", reason="restart"),
    )
