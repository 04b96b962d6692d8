"""What an event does to a session: the routing of events to plans (ARCHITECTURE 3 and 4)."""

from __future__ import annotations

from typing import Literal, assert_never

from vigil.contracts import (
    Cause,
    Control,
    Event,
    EventType,
    External,
    FollowUp,
    Queued,
    State,
    Tick,
    TimerBlock,
    TimerFired,
    ToolResultEvent,
    UserMessage,
)

from . import gates
from .draft import RETRY_TIMER, Draft
from .policy import Moment, Policy

KEYED_MAX = 32
"""Ids of keyed messages that the state remembers; older repeats are the gateway's to catch."""
QUEUE_MAX = 10_000
"""Events that wait, user messages included: a quarter of a megabyte of the turn. The gateway
refuses a person long before; only who publishes on the bus comes here."""
TYPES: dict[type, EventType] = {
    UserMessage: "user_message",
    TimerFired: "timer",
    ToolResultEvent: "tool_result",
    Tick: "tick",
    External: "external",
    Control: "control",
}


def cause_of(seq: int, event: Event) -> Cause:
    return Cause(id=event.id, seq=seq, type=TYPES[type(event)])


def owes(state: State) -> Literal["call", "take"] | None:
    """Return what the session must do by itself, without another event.

    A loop that waits for a deadline owes nothing: the deadline is an event. While something is
    owed the wake of the last event isn't acknowledged, so a crash here is found by it.
    """
    if state.loop is not None:
        return "call" if state.loop.retry is None else None
    return "take" if state.queue else None


def fold(key: str, state: State, seq: int, event: Event, moment: Moment, policy: Policy) -> Draft:
    """Fold the event with stream sequence `seq` into the state; it is the next of its session."""
    cause = cause_of(seq, event)
    draft = Draft(key, state, moment, policy, cause)
    draft.update(position=seq)
    match event:
        case UserMessage():
            _user_message(draft, cause, event)
        case TimerFired():
            _timer(draft, cause, event)
        case Control():
            _control(draft, cause, event)
        case ToolResultEvent():
            draft.note("late_result", "no call is open that this result could belong to")
        case External() | Tick():
            draft.note("not_served", f"no profile of this session takes {cause.type} events")
        case _:
            assert_never(event)
    return draft


def take(key: str, state: State, event: Event, moment: Moment, policy: Policy) -> Draft:
    """Take the first queued event, now that no loop is open. `event` is what it points to."""
    queued, rest = state.queue[0], state.queue[1:]
    cause = Cause(id=event.id, seq=queued.seq, type=queued.type)
    draft = Draft(key, state, moment, policy, cause)
    draft.update(queue=rest)
    if isinstance(event, UserMessage):
        _answer(draft, cause, event)
    elif isinstance(event, TimerFired):
        _fire(draft, cause, event)
    return draft


# ---------------------------------------------------------------- user messages


def _is_repeat(state: State, event: UserMessage) -> bool:
    return event.payload.is_keyed and event.id in state.keyed


def _user_message(draft: Draft, cause: Cause, event: UserMessage) -> None:
    state = draft.state
    if _is_repeat(state, event):
        # Delivery can't tell a repeat from news: what is decided from here on knows of it.
        draft.update(fence=cause.seq)
        draft.note("repeat", "a message with this idempotency key was folded before", event.id)
        return
    if event.payload.is_keyed:
        draft.update(keyed=(*state.keyed, event.id)[-KEYED_MAX:])
    draft.update(fence=cause.seq, counters=gates.reset(state.counters), is_locked=False)
    void_follow_ups(draft, "the person spoke first")
    _close_undirected_loop(draft)
    if len(draft.state.queue) >= QUEUE_MAX:
        draft.note("queue_full", "too many events are waiting in this session", event.id)
        draft.ended.append(cause.id)
    elif draft.state.loop is not None or draft.state.queue:
        _enqueue(draft, cause)
    else:
        _answer(draft, cause, event)
    draft.cause = cause


def _answer(draft: Draft, cause: Cause, event: UserMessage) -> None:
    draft.begin_loop(cause, is_direct=True)
    draft.row_text("user", "person", event.payload.text)


def void_follow_ups(draft: Draft, why: str) -> None:
    """Void every open follow-up that the person didn't ask to keep (SPEC S-6)."""
    for timer_id, follow_up in draft.state.follow_ups.items():
        if not follow_up.keep:
            draft.close_follow_up(timer_id)
            draft.note("void", why, timer_id)


def _close_undirected_loop(draft: Draft) -> None:
    """Close a loop that no user message began. A kept reminder is taken up again later."""
    loop = draft.state.loop
    if loop is None or loop.is_direct:
        return
    draft.end_loop(None)
    is_unsaid = loop.is_ordered and loop.sends == 0  # what send_message said isn't said again
    if is_unsaid and loop.timer_id is not None and loop.follow_up is not None:
        draft.ended.remove(loop.cause.id)
        if loop.timer_id not in draft.state.follow_ups:
            reopened = {**draft.state.follow_ups, loop.timer_id: loop.follow_up}
            draft.update(follow_ups=reopened)
        waiting = Queued(seq=loop.cause.seq, type="timer")
        draft.update(queue=(*draft.state.queue, waiting))
        draft.note("put_back", "the person spoke first; the reminder follows", loop.timer_id)
    else:
        draft.note("void", "the person spoke first", loop.timer_id)


def _enqueue(draft: Draft, cause: Cause) -> None:
    entry = Queued(seq=cause.seq, type=cause.type)
    queue = draft.state.queue
    if cause.type == "user_message" and draft.state.loop is None:
        # Only put-back reminders are waiting: the person goes first.
        people = tuple(q for q in queue if q.type == "user_message")
        others = tuple(q for q in queue if q.type != "user_message")
        draft.update(queue=(*people, entry, *others))
    else:
        draft.update(queue=(*queue, entry))
    draft.outcome = "queued"


# ---------------------------------------------------------------- timers


def _timer(draft: Draft, cause: Cause, event: TimerFired) -> None:
    payload = event.payload
    if payload.kind == "deadline":
        _deadline(draft, event)
        return
    follow_up = draft.state.follow_ups.get(payload.timer_id)
    if follow_up is None or follow_up.generation != payload.generation:
        draft.note("stale_timer", "void, replaced or said before", payload.timer_id)
    elif draft.state.loop is None and not draft.state.queue:
        _fire(draft, cause, event)
    elif len(draft.state.queue) < draft.policy.queue_max:
        if cause.seq not in {q.seq for q in draft.state.queue}:
            _enqueue(draft, cause)
    else:
        draft.close_follow_up(payload.timer_id, has_fired=True)
        draft.note("queue_full", "too many events are waiting in this session", payload.timer_id)
        draft.ended.append(cause.id)


def _deadline(draft: Draft, event: TimerFired) -> None:
    loop = draft.state.loop
    retry = None if loop is None else loop.retry
    if (
        loop is None
        or retry is None
        or event.payload.timer_id != RETRY_TIMER
        or retry.generation != event.payload.generation
    ):
        draft.note("stale_deadline", "what it waited for is over", event.payload.timer_id)
        return
    draft.update_loop(retry=None, retries=retry.attempt)
    draft.cause = loop.cause
    draft.outcome = "begun"


def _fire(draft: Draft, cause: Cause, event: TimerFired) -> None:
    """Let a due follow-up speak, ask the model, or say why not."""
    timer_id = event.payload.timer_id
    follow_up = draft.state.follow_ups.get(timer_id)
    if follow_up is None or follow_up.generation != event.payload.generation:
        draft.note("stale_timer", "void, replaced or said before", timer_id)
        draft.ended.append(cause.id)
        return
    refusal = _refusal(draft, follow_up)
    draft.close_follow_up(timer_id, has_fired=True)
    if refusal is not None:
        draft.note(f"blocked_{refusal.code}", refusal.text, timer_id)
        draft.outcome = "blocked"
        draft.ended.append(cause.id)
    elif draft.held_until() is not None:
        draft.hold(timer_id, follow_up)
        draft.outcome = "held"
        draft.ended.append(cause.id)
    elif follow_up.message is not None:
        draft.row("user", "timer", TimerBlock(timer_id=timer_id, follow_up=follow_up))
        draft.row_text("assistant", "agent", follow_up.message)
        draft.begin_loop(cause, is_direct=False, timer_id=timer_id, follow_up=follow_up)
        loop = draft.loop
        draft.say(
            follow_up.message,
            is_autonomous=True,
            is_ordered=loop.is_ordered,
            tag=loop.tag,
            fence=loop.fence,
        )
        draft.end_loop("answered")
    else:
        draft.begin_loop(cause, is_direct=False, timer_id=timer_id, follow_up=follow_up)
        draft.row("user", "timer", TimerBlock(timer_id=timer_id, follow_up=follow_up))


def _refusal(draft: Draft, follow_up: FollowUp) -> gates.Blocked | None:
    if not follow_up.keep and not draft.policy.autonomy_enabled:
        return gates.Blocked("disabled", "autonomy is switched off")
    return draft.gate(is_ordered=follow_up.keep)


# ---------------------------------------------------------------- control


def _control(draft: Draft, cause: Cause, event: Control) -> None:
    payload = event.payload
    match payload.op:
        case "stop":
            if draft.state.loop is None:
                draft.note("nothing_to_stop", "no turn is running")
            else:
                draft.end_loop("stopped")
                draft.note("stopped", payload.reason or "a person stopped it")
        case "clear_follow_ups":
            void_follow_ups(draft, payload.reason or "cleared")
            draft.outcome = "cleared"
        case "cancel_timer":
            if draft.close_follow_up(payload.timer_id or "") is None:
                draft.note("no_such_timer", "it is not open", payload.timer_id)
            else:
                draft.note("cancelled", payload.reason or "a person cancelled it", payload.timer_id)
                draft.outcome = "cleared"
        case _:
            assert_never(payload.op)
    draft.cause = cause
    draft.ended.append(cause.id)


# ---------------------------------------------------------------- when a step keeps failing


def begin_takeover(key: str, state: State, moment: Moment, policy: Policy) -> Draft:
    """Record one more attempt at the next step; whoever had it before is gone."""
    draft = Draft(key, state, moment, policy)
    draft.update(attempt=state.attempt + 1)
    draft.note("taken_over", f"attempt {state.attempt + 1} at the next step")
    draft.outcome = "taken_over"
    return draft


def poison(
    key: str,
    state: State,
    cause: Cause,
    reason: str,
    moment: Moment,
    policy: Policy,
    event: Event | None = None,
) -> Draft:
    """Pass over an event that can't be used; the session goes on.

    `event`: what it says, if it can be read and only its handling failed.
    """
    draft = Draft(key, state, moment, policy, cause)
    draft.update(position=cause.seq)
    draft.note("dead_letter", reason, cause.id)
    draft.outcome = "failed"
    draft.ended.append(cause.id)
    if cause.type == "user_message":
        draft.update(fence=cause.seq, counters=gates.reset(state.counters))
        void_follow_ups(draft, "the person spoke first")
        _close_undirected_loop(draft)
        draft.cause = cause
        draft.outcome = "failed"
        draft.say(APOLOGY, is_autonomous=False)
    elif isinstance(event, TimerFired):
        _drop_timer(draft, event)
    return draft


def _drop_timer(draft: Draft, event: TimerFired) -> None:
    """Close what waits for a timer that is passed over: it would wait for ever."""
    payload = event.payload
    follow_up = draft.state.follow_ups.get(payload.timer_id)
    if payload.kind == "follow_up":
        if follow_up is not None and follow_up.generation == payload.generation:
            draft.close_follow_up(payload.timer_id, has_fired=True)
        return
    loop = draft.state.loop
    if loop is None or loop.retry is None or loop.retry.generation != payload.generation:
        return
    draft.update_loop(retry=None)
    draft.end_loop("failed")
    if loop.is_direct:
        draft.cause = loop.cause
        draft.say(APOLOGY, is_autonomous=False)
        draft.row_text("assistant", "agent", APOLOGY)


def give_up(
    key: str, state: State, moment: Moment, policy: Policy, event: Event | None = None
) -> Draft:
    """Close the owed step after too many attempts: the open loop, or the first queued event.

    `event`: what the first queued entry points to, if it can be read.
    """
    draft = Draft(key, state, moment, policy)
    if state.loop is not None:
        is_direct = state.loop.is_direct
        draft.end_loop("failed")
    else:
        queued = state.queue[0]
        name = f"seq-{queued.seq}" if event is None else event.id
        draft.cause = Cause(id=name, seq=queued.seq, type=queued.type)
        draft.update(queue=state.queue[1:])
        draft.ended.append(name)
        if isinstance(event, TimerFired):
            _drop_timer(draft, event)
        is_direct = queued.type == "user_message"
    draft.note("gave_up", f"after {state.attempt} attempts")
    draft.outcome = "failed"
    if is_direct:
        draft.say(APOLOGY, is_autonomous=False)
        draft.row_text("assistant", "agent", APOLOGY)
    return draft


APOLOGY = "Something went wrong on my side while I worked on your message, so I gave up on it."
