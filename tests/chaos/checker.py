"""The invariants, as pure functions over a finished log (RELIABILITY 3.1).

Each returns what it found broken, as sentences that begin with the invariant's name. They
recompute what they can from the log alone: cap, cooldown and what is void come from the stored
order, not from what the services noted. Two rules hold for the rehearsal model only: one send
for each message of the person, and at most one for each timer, beside what asks for their leave.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tests.chaos.history import Histories, SessionLog, Stored
from vigil.contracts import (
    SOCKET,
    Approval,
    BoardChange,
    CancelTimer,
    External,
    ExternalBlock,
    ScheduleTimer,
    SendMessage,
    State,
    TimerFired,
    Turn,
    UserMessage,
)

HOUR_MS: Final = 3_600_000


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the run was configured with."""

    max_consecutive: int = 3
    cooldown_ms: int = 15_000
    ordered_per_hour: int = 12
    order_margin_s: float = 1.0
    """A timer asked for so long before another one was due must not come after it."""
    ended_at: datetime | None = None
    """When the run ended; None: what is open then is not judged."""


Check = Callable[[SessionLog, Rules], Iterator[str]]


def check_log(histories: Histories, rules: Rules) -> list[str]:
    """Return every violation in a log."""
    return [
        f"{found[:2]} {log.key}:{found[2:]}"
        for log in histories.sessions.values()
        for check in CHECKS
        for found in check(log, rules)
    ]


# ---------------------------------------------------------------- I1, I2: events and turns


def order_is_kept(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I1: ordinals unbroken, and each turn folds at most the very next event."""
    seqs = sorted(log.events)
    for number, (before, stored) in enumerate(log.steps(), start=1):
        turn = stored.record
        if turn.ordinal != number or turn.state.turns != number:
            yield f"I1 turn {stored.seq} has ordinal {turn.ordinal}, expected {number}"
        position = turn.state.position
        if position < before.position:
            yield f"I1 turn {number} goes back from {before.position} to {position}"
        elif position > before.position:
            following = bisect_right(seqs, before.position)
            expected = seqs[following] if following < len(seqs) else None
            if position != expected:
                yield f"I1 turn {number} folds {position}, the next event is {expected}"
        if position > stored.seq:
            yield f"I1 turn {number} at {stored.seq} folds the later {position}"


def events_count_once(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I2: no exchange ends twice, a repeated id does nothing, effects are decided once."""
    for event_id, times in Counter(i for t in log.turns for i in t.record.ended).items():
        if times > 1:
            yield f"I2 the exchange of {event_id} ended {times} times"
    folding = {turn.record.state.position: turn.record for turn in reversed(log.turns)}
    seen: set[str] = set()
    for seq, event in sorted(log.events.items()):
        if event is None:
            continue
        if event.id in seen and isinstance(event, UserMessage | External):
            turn = folding.get(seq)
            if turn is not None and "repeat" not in {note.code for note in turn.notes}:
                yield f"I2 the repeat {seq} of {event.id} was folded as news"
        seen.add(event.id)
    for effect, times in Counter(e.id for t in log.turns for e in t.record.effects).items():
        if times > 1:
            yield f"I2 the effect {effect} was decided {times} times"


def nothing_is_stuck(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I3: every event is folded, every loop closed, nothing waits in the queue."""
    newest = max(log.events, default=0)
    if newest > log.state.position:
        yield f"I3 stuck: the event {newest} is not folded, position {log.state.position}"
    if log.state.loop is not None:
        yield f"I3 stuck: the loop of {log.state.loop.cause.seq} is open"
    if log.state.queue:
        yield f"I3 stuck: {len(log.state.queue)} events are queued"


# ---------------------------------------------------------------- I4, I5: what is said


def everything_is_said(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I4: each send is said or has a receipt; each message of the person was answered."""
    said = {stored.record.id for stored in log.said}
    closed = {stored.record.effect_id for stored in log.receipts}
    for turn, send in log.sends():
        if send.id not in said and send.id not in closed:
            yield f"I4 the send {send.id} of turn {turn.record.ordinal} is not settled"
        if send.id in said and send.id in closed and send.payload.channel == SOCKET:
            yield f"I4 the send {send.id} is said and has a receipt"
    ended = {event_id for turn in log.turns for event_id in turn.record.ended}
    answers = Counter(send.payload.caused_by for _, send in log.sends()) - _requests(log)
    shared = {subject for code, subject in _notes(log) if code in ("interrupted", "joined")}
    for event in {e.id: e for e in log.events.values() if isinstance(e, UserMessage)}.values():
        if event.id not in ended:
            yield f"I4 the exchange of the message {event.id} did not end"
        if answers[event.id] == 0 and event.id not in shared:
            yield f"I4 the message {event.id} has no answer"


def _requests(log: SessionLog) -> Counter[str]:
    """Count what asks for the person's leave, by the event that it is about, and what tells that
    it isn't needed any more, by the event that made it so."""
    changes = [
        (turn.record.event, effect.payload.entity)
        for turn in log.turns
        for effect in turn.record.effects
        if isinstance(effect, BoardChange) and isinstance(effect.payload.entity, Approval)
    ]
    asked = {one.id: one.caused_by for _, one in changes if isinstance(one, Approval)}
    withdrawn = {
        one.id: event.id
        for event, one in changes
        if isinstance(one, Approval) and event is not None and one.state == "superseded"
    }
    return Counter([*asked.values(), *withdrawn.values()])


def _notes(log: SessionLog) -> Iterator[tuple[str, str | None]]:
    return ((note.code, note.subject) for turn in log.turns for note in turn.record.notes)


def what_came_from_outside_is_known(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I4: each event is one row of the history, whether it was answered, blocked or void."""
    told = Counter(
        block.event_id
        for turn in log.turns
        for row in turn.record.rows
        for block in row.blocks
        if isinstance(block, ExternalBlock)
    )
    dropped = {subject for code, subject in _notes(log) if code in ("queue_full", "dead_letter")}
    ids = {event.id for event in log.events.values() if isinstance(event, External)}
    for event_id in sorted(ids - dropped):
        if told[event_id] != 1:
            yield f"I4 the event {event_id} from outside is told {told[event_id]} times"


def untrusted_content_is_marked(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I6: what an untrusted event led to is void if the person speaks, and carries the mark."""
    untrusted = {
        event.id
        for event in log.events.values()
        if isinstance(event, External) and not event.payload.is_trusted
    }
    marked = {send.id for _, send in log.sends() if send.payload.is_tainted}
    for _, send in log.sends():
        payload = send.payload
        if payload.caused_by in untrusted and not (payload.is_tainted and payload.is_voidable):
            yield f"I6 {send.id} descends from untrusted content and isn't marked"
    for stored in log.said:
        if stored.record.is_tainted != (stored.record.id in marked):
            yield f"I6 the mark of {stored.record.id} was lost or made up on the way"


def channels_get_all(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I4: what is said over a channel has an order, and each order one receipt that closes it."""
    for stored in log.said:
        effect, channel = stored.record.id, stored.record.channel
        if channel == SOCKET:
            continue
        orders = [order.seq for order in log.orders if order.record.effect_id == effect]
        if not orders:
            yield f"I4 {effect} was said over {channel}, and nothing was ordered"
            continue
        for begin, end in zip(orders, [*orders[1:], float("inf")], strict=True):
            closed = [
                r for r in log.receipts if r.record.effect_id == effect and begin < r.seq < end
            ]
            if len(closed) != 1:
                yield f"I4 the order {begin} of {effect} has {len(closed)} receipts"


def nothing_is_said_twice(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I5: one message for each send, as decided; one send for each message or timer."""
    sends = {send.id: (turn, send) for turn, send in log.sends()}
    for effect, times in Counter(stored.record.id for stored in log.said).items():
        if times > 1:
            yield f"I5 {effect} was said {times} times"
    for stored in log.said:
        turn, send = sends.get(stored.record.id, (None, None))
        if turn is None or send is None or turn.seq > stored.seq:
            yield f"I5 {stored.record.id} was said and no turn before had decided it"
        elif send.payload.text != stored.record.text:
            yield f"I5 {stored.record.id} was said in other words than decided"
    timers = {e.id: e.payload for e in log.events.values() if isinstance(e, TimerFired)}
    requests = _requests(log)
    causes: Counter[str] = Counter()
    for event_id, times in Counter(s.payload.caused_by for _, s in sends.values()).items():
        payload = timers.get(event_id)
        pair = None if payload is None else f"timer {payload.timer_id}/{payload.generation}"
        causes[pair or f"event {event_id}"] += times - requests[event_id]
    for cause, times in causes.items():
        if times > 1:
            yield f"I5 {times} sends for the {cause}"


def speech_is_in_order(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I5: each send names the one before it, and they are said in that order."""
    said_at = {stored.record.id: stored.seq for stored in reversed(log.said)}
    previous: str | None = None
    last_seq = 0
    for _, send in log.sends():
        if send.payload.previous != previous:
            yield f"I5 {send.id} names {send.payload.previous}, not {previous}, before itself"
        previous = send.id
        seq = said_at.get(send.id, last_seq + 1)
        if seq < last_seq:
            yield f"I5 {send.id} was said at {seq}, before the send it follows at {last_seq}"
        last_seq = max(seq, last_seq) if send.id in said_at else last_seq


# ---------------------------------------------------------------- I6: cap, cooldown, void


def gates_hold(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I6: cap and cooldown of autonomous sends, hourly limit of ordered ones, by the turns."""
    consecutive, last_ms = 0, None
    ordered_ms: list[int] = []
    repeats = _repeats(log)
    for before, stored in log.steps():
        turn, position = stored.record, stored.record.state.position
        if position > before.position and position in log.people and position not in repeats:
            consecutive, last_ms = 0, None
        now_ms = int(turn.created_at.timestamp() * 1000)
        for send in turn.effects:
            if not isinstance(send, SendMessage) or not send.payload.is_autonomous:
                continue
            if not send.payload.is_voidable:
                ordered_ms = [at for at in ordered_ms if now_ms - at < HOUR_MS] + [now_ms]
                if len(ordered_ms) > rules.ordered_per_hour:
                    yield f"I6 {len(ordered_ms)} ordered sends within an hour at {send.id}"
                continue
            consecutive += 1
            if consecutive > rules.max_consecutive:
                yield f"I6 {send.id} is autonomous send {consecutive} in a row"
            if last_ms is not None and now_ms - last_ms < rules.cooldown_ms:
                yield f"I6 {send.id} comes {now_ms - last_ms} ms after the one before"
            last_ms = now_ms


def cap_holds_in_the_transcript(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I6: what arrives between two messages of the person is within the cap, too."""
    voidable = {send.id for _, send in log.sends() if send.payload.is_voidable}
    in_a_row = Counter(
        bisect_right(log.people, stored.seq) for stored in log.said if stored.record.id in voidable
    )
    for place, times in in_a_row.items():
        if times > rules.max_consecutive:
            yield f"I6 {times} autonomous messages were said in a row, after message {place}"


def nothing_void_is_said(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I6: no voidable send is said after a newer message of the person; none void without."""
    sends = {send.id: send.payload for _, send in log.sends()}
    for stored in log.said:
        payload = sends.get(stored.record.id)
        if payload is None or not payload.is_voidable:
            continue
        if newer := _people_between(log, payload.fence, stored.seq):
            yield f"I6 void: {stored.record.id} was said at {stored.seq}, after {newer}"
    for receipt in log.receipts:
        payload = sends.get(receipt.record.effect_id)
        if receipt.record.outcome != "void" or payload is None:
            continue
        if not payload.is_voidable:
            yield f"I6 {receipt.record.effect_id} can't be void and was"
        elif not _people_between(log, payload.fence, receipt.seq):
            yield f"I6 {receipt.record.effect_id} was void and nobody had spoken"


def _people_between(log: SessionLog, after: int, before: int) -> list[int]:
    return [seq for seq in log.people if after < seq < before]


def _repeats(log: SessionLog) -> set[int]:
    """Return the sequences of messages whose id was stored before."""
    seen: set[str] = set()
    found: set[int] = set()
    for seq in log.people:
        event = log.events[seq]
        if event is not None and event.id in seen:
            found.add(seq)
        seen |= set() if event is None else {event.id}
    return found


# ---------------------------------------------------------------- I7, I8: timers


def only_open_timers_speak(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I7: a timer leads to a send only if its generation was open when its loop began."""
    timers = {e.id: e.payload for e in log.events.values() if isinstance(e, TimerFired)}
    steps = log.steps()
    for number, (_, stored) in enumerate(steps):
        for send in stored.record.effects:
            if not isinstance(send, SendMessage) or send.payload.caused_by not in timers:
                continue
            payload = timers[send.payload.caused_by]
            before = _before_loop(steps, number, send.payload.caused_by)
            follow_up = before.follow_ups.get(payload.timer_id)
            if follow_up is None or follow_up.generation != payload.generation:
                pair = f"{payload.timer_id}/{payload.generation}"
                yield f"I7 {send.id} comes from the timer {pair}, which was not open"


def _before_loop(steps: list[tuple[State, Stored[Turn]]], number: int, cause_id: str) -> State:
    """Return the state before the loop of `cause_id` that turn `number` ends."""
    before = steps[number][0]
    while before.loop is not None and before.loop.cause.id == cause_id:
        number -= 1
        before = steps[number][0]
    return before


def _was_due(effect: ScheduleTimer, rules: Rules) -> bool:
    """Whether it should have fired by the end; the look at a pause comes minutes later."""
    return rules.ended_at is None or effect.payload.fire_at < rules.ended_at


def every_timer_ends(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I8: what was scheduled has fired, or was cancelled, void or replaced; none is early."""
    fired: set[tuple[str, int]] = set()
    for seq, event in log.events.items():
        if isinstance(event, TimerFired):
            fired.add((event.payload.timer_id, event.payload.generation))
            if event.created_at < event.payload.fire_at:
                yield f"I8 the timer event {seq} is early"
    cancelled = {
        _pair(e) for t in log.turns for e in t.record.effects if isinstance(e, CancelTimer)
    }
    open_ = {(name, f.generation) for name, f in log.state.follow_ups.items()}
    for turn in log.turns:
        for effect in turn.record.effects:
            if not isinstance(effect, ScheduleTimer) or not _was_due(effect, rules):
                continue
            if _pair(effect) not in fired | cancelled | open_:
                yield f"I8 the timer {_pair(effect)} of turn {turn.record.ordinal} is lost"
    for timer_id, follow_up in log.state.follow_ups.items():
        if rules.ended_at is not None and follow_up.fire_at < rules.ended_at:
            yield f"I8 the follow-up {timer_id} is open and was due at {follow_up.fire_at}"


def timers_come_in_order(log: SessionLog, rules: Rules) -> Iterator[str]:
    """I8: timers that wait together come in order of (fire_at, id).

    One that was cancelled doesn't wait any more: that the broker fired it by itself at that moment
    may be found later, and the fold ignores it.
    """
    asked_at = {
        _pair(effect): turn.record.created_at
        for turn in log.turns
        for effect in turn.record.effects
        if isinstance(effect, ScheduleTimer)
    }
    cancelled_at = {
        _pair(e): turn.seq
        for turn in log.turns
        for e in turn.record.effects
        if isinstance(e, CancelTimer)
    }
    seen: set[tuple[str, int]] = set()
    latest: tuple[datetime, str] | None = None
    for seq, event in sorted(log.events.items()):
        if not isinstance(event, TimerFired):
            continue
        payload = event.payload
        pair = (payload.timer_id, payload.generation)
        if pair in seen or cancelled_at.get(pair, seq) < seq:  # which the fold ignores
            continue
        seen.add(pair)
        place = (payload.fire_at, payload.timer_id)
        if latest is not None and place < latest:
            asked = asked_at.get(pair)
            if asked is not None and asked < latest[0] - timedelta(seconds=rules.order_margin_s):
                yield f"I8 the timer {payload.timer_id} at {seq} comes after {latest[1]}"
            continue
        latest = place


def _pair(effect: ScheduleTimer | CancelTimer) -> tuple[str, int]:
    return effect.payload.timer_id, effect.payload.generation


CHECKS: Final[tuple[Check, ...]] = (
    order_is_kept,
    events_count_once,
    nothing_is_stuck,
    everything_is_said,
    what_came_from_outside_is_known,
    untrusted_content_is_marked,
    channels_get_all,
    nothing_is_said_twice,
    speech_is_in_order,
    gates_hold,
    cap_holds_in_the_transcript,
    nothing_void_is_said,
    only_open_timers_speak,
    every_timer_ends,
    timers_come_in_order,
)
