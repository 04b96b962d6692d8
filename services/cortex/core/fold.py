"""What an event does to a session: the routing of events to plans (ARCHITECTURE 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, assert_never

from vigil.contracts import (
    Cause,
    Control,
    ControlPayload,
    Event,
    EventType,
    External,
    State,
    Tick,
    TimerFired,
    ToldEvent,
    ToolResultEvent,
    UserMessage,
)
from vigil.contracts.events import LetterName

from . import external, home, person, speech, timers
from .context import plainly
from .draft import Draft, job_record
from .draft.policy import Moment, Policy
from .pending import tasks
from .queue import is_void
from .sway import Sway
from .tools import callers, calls
from .work import approvals, children, detached
from .work.asked import elicitation, sampled
from .work.loop_end import end_loop

VOUCHED_MAX: Final = 50
"""Letters of one conversation that its person vouched for."""

TYPES: dict[type, EventType] = {
    UserMessage: "user_message",
    TimerFired: "timer",
    ToolResultEvent: "tool_result",
    Tick: "tick",
    External: "external",
    Control: "control",
    ToldEvent: "told",
}


def cause_of(seq: int, event: Event) -> Cause:
    return Cause(id=event.id, seq=seq, type=TYPES[type(event)])


def is_early(event: Event | None, now: datetime) -> bool:
    """Whether a timer is looked at before its time: its person changed the hours that put it off,
    and whoever fired it may have heard of that first."""
    return isinstance(event, TimerFired) and event.payload.fire_at > now


def owes(state: State) -> Literal["call", "take", "end"] | None:
    """Return what the session must do by itself, without another event.

    A loop that waits for a deadline, or for a tool's result, owes nothing: those are events. The
    same holds for messages that wait for more. While something is owed the wake of the last event
    isn't acknowledged, so a crash here is found by it.
    """
    if state.loop is not None:
        is_waiting = state.loop.retry is not None or state.loop.waiting is not None
        return None if is_waiting else "call"
    if job_record.is_running(state.job) or _is_lost(state):
        return "end"
    if state.gathering is not None:
        return None
    return "take" if state.queue else None


def _is_lost(state: State) -> bool:
    """Whether a session that was started lost what it was at; a job tells that by its status."""
    return state.is_locked and state.start is not None and state.job is None


def end_lost(key: str, state: State, moment: Moment, policy: Policy) -> Draft:
    """End a job, or a session that was started, which lost its loop: its state could not be read.

    Who waits for the session is told, be it its parent, its task or the person, once: it forgets
    with what it began.
    """
    draft = Draft(key, state, moment, policy, step="end")
    if _is_lost(state):
        # With the state went what tells who had a part in it.
        tasks.report_end(draft, "failed", LOST, Sway.OUTSIDE)
        draft.update(start=None)
    draft.note("gave_up", "because what it was at could not be read")
    draft.outcome = "failed"
    return draft


LOST = "What it was at could not be read, so it was ended."


def fold(key: str, state: State, seq: int, event: Event, moment: Moment, policy: Policy) -> Draft:
    """Fold the event with stream sequence `seq` into the state; it is the next of its session."""
    cause = cause_of(seq, event)
    draft = Draft(key, state, moment, policy, cause, "fold")
    draft.update(position=seq, is_offered=state.is_offered or not state.turns)
    match event:
        case UserMessage() | External() | ToldEvent() | Tick():
            _begin(draft, cause, event, cause.type)
        case TimerFired():
            timers.receive(draft, cause, event)
        case Control():
            _control(draft, cause, event)
        case ToolResultEvent():
            is_taken = elicitation.receive(draft, cause, event)
            is_taken = is_taken or sampled.receive(draft, cause, event)
            if not is_taken and not detached.receive(draft, cause, event):
                calls.receive(draft, cause, event)
        case _:
            assert_never(event)
    if draft.profile.keep_up is not None:
        draft.profile.keep_up(draft)
    return draft


def _begin(draft: Draft, cause: Cause, event: Event, trigger: str) -> None:
    """Let an event do what the session's profile says that it does."""
    begin = draft.policy.profile.begins.get(trigger)
    if begin is not None:
        begin(draft, cause, event)
        return
    draft.note("not_served", f"no profile of this session takes {trigger} events")
    draft.ended.append(cause.id)


def take(key: str, state: State, events: Sequence[Event], moment: Moment, policy: Policy) -> Draft:
    """Take what is first in the queue, now that no loop is open.

    Args:
        events: what the entries of :func:`head` point to: one at least, in their order.
    """
    causes = [
        Cause(id=event.id, seq=queued.seq, type=queued.type)
        for queued, event in zip(state.queue, events, strict=False)
    ]
    draft = Draft(key, state, moment, policy, causes[0], "take")
    count = _take(draft, causes, events)
    draft.update(queue=state.queue[count:])
    return draft


def _take(draft: Draft, causes: Sequence[Cause], events: Sequence[Event]) -> int:
    """Take as many events as go into one turn; return how many."""
    if draft.policy.profile.take is not None:
        return draft.policy.profile.take(draft, causes, events)
    cause, event = causes[0], events[0]
    match event:
        case UserMessage():
            pairs = zip(causes, events, strict=True)
            return person.take(draft, [(c, e) for c, e in pairs if isinstance(e, UserMessage)])
        case External() if is_void(draft.state, draft.state.queue[0]):
            return external.remember(draft, [e for e in events if isinstance(e, External)])
        case External():
            external.consider(draft, cause, event)
        case ToolResultEvent():
            detached.take(draft, cause, event)
        case TimerFired() if event.payload.kind == "deadline":
            detached.take(draft, cause, event)
        case Control():
            detached.take(draft, cause, event)
        case ToldEvent():
            home.take(draft, cause, event)
        case TimerFired():
            timers.fire(draft, cause, event)
        case Tick():
            raise AssertionError(f"{cause.type} events are never queued")
        case _:
            assert_never(event)
    return 1


# ---------------------------------------------------------------- control


def _control(draft: Draft, cause: Cause, event: Control) -> None:
    payload = event.payload
    match payload.op:
        case "stop":
            _stop(draft, payload.reason)
        case "clear_follow_ups":
            person.void_follow_ups(draft, payload.reason or "cleared")
            draft.outcome = "cleared"
        case "cancel_timer":
            if draft.close_follow_up(payload.timer_id or "") is None:
                draft.note("no_such_timer", "it is not open", payload.timer_id)
            else:
                draft.note("cancelled", payload.reason or "a person cancelled it", payload.timer_id)
                draft.outcome = "cleared"
        case "start":
            _begin(draft, cause, event, "start")
            return
        case "cancel" | "status":
            children.take(draft, cause, event)
        case "approval":
            approvals.decide(draft, cause, event)
            return
        case "fork" | "past":
            _go_on_from(draft, payload)
        case "results":
            callers.receive(draft, cause, event)
            return
        case "vouch" | "unvouch":
            _vouch(draft, payload.letter, is_fine=payload.op == "vouch")
        case _:
            assert_never(payload.op)
    draft.cause = cause
    draft.ended.append(cause.id)


def _stop(draft: Draft, reason: str) -> None:
    if draft.state.loop is None:
        draft.note("nothing_to_stop", "no turn is running")
        return
    end_loop(draft, "stopped")
    draft.note("stopped", reason or "a person stopped it")


def _go_on_from(draft: Draft, order: ControlPayload) -> None:
    """Begin with what another conversation knew up to there, or with what was said before this one
    was imported, and with nothing else."""
    if draft.state.turns and order.op == "fork":
        draft.note("not_forked", "this conversation had begun")
    elif draft.state.turns:
        draft.note("not_served", "this conversation had begun")
    elif order.fork is not None:
        draft.update(fork=order.fork)
        draft.outcome = "forked"
    elif order.past is not None:
        draft.update(past=order.past)
        draft.outcome = "imported"


def _vouch(draft: Draft, letter: LetterName | None, *, is_fine: bool) -> None:
    """Have a letter be the person's own words from now on, exactly the text that they saw; or no
    more."""
    draft.outcome = "cleared"
    if letter is None:
        return
    others = tuple(one for one in draft.state.vouched if one.handle != letter.handle)
    if is_fine:
        draft.update(vouched=(*others, letter)[-VOUCHED_MAX:])
        draft.note("vouched", "its text counts as theirs, word for word", letter.handle)
    elif others != draft.state.vouched:
        draft.update(vouched=others)
        draft.note("unvouched", "its text is closed again", letter.handle)


# ---------------------------------------------------------------- when a step keeps failing


def begin_takeover(key: str, state: State, moment: Moment, policy: Policy) -> Draft:
    """Record one more attempt at the next step; whoever had it before is gone."""
    draft = Draft(key, state, moment, policy, step="takeover")
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
    draft = Draft(key, state, moment, policy, cause, "poison")
    draft.update(position=cause.seq)
    draft.note("dead_letter", reason, cause.id)
    draft.outcome = "failed"
    draft.ended.append(cause.id)
    if cause.type == "user_message":
        person.speak_first(draft, cause)
        draft.cause = cause
        draft.outcome = "failed"
        speech.say(draft, APOLOGY, Sway.NONE, is_autonomous=False)
    elif isinstance(event, TimerFired):
        _drop_timer(draft, event)
    elif isinstance(event, ToldEvent):
        plainly.say_of_event(draft, event.payload)
    elif isinstance(event, Control):
        children.refuse(draft, event.payload.start)
    return draft


def _drop_timer(draft: Draft, event: TimerFired) -> None:
    plainly.say_of_timer(draft, event.payload)
    loop = timers.drop(draft, event.payload)
    if loop is not None and loop.is_direct:
        draft.cause = loop.cause
        speech.say(draft, APOLOGY, Sway.NONE, is_autonomous=False)
        draft.row_text("assistant", "agent", APOLOGY)


def give_up(
    key: str, state: State, moment: Moment, policy: Policy, event: Event | None = None
) -> Draft:
    """Close the owed step after too many attempts: the open loop, or the first queued event.

    `event`: what the first queued entry points to, if it can be read.
    """
    if owes(state) == "end":
        return end_lost(key, state, moment, policy)
    draft = Draft(key, state, moment, policy, step="give_up")
    if state.loop is not None:
        is_direct = state.loop.is_direct
        plainly.say_of_loop(draft)
        end_loop(draft, "failed", is_interrupted=True)
    else:
        queued = state.queue[0]
        name = f"seq-{queued.seq}" if event is None else event.id
        draft.cause = Cause(id=name, seq=queued.seq, type=queued.type)
        draft.update(queue=state.queue[1:])
        draft.ended.append(name)
        if (task := detached.forget(draft, queued.seq)) is not None:
            plainly.say_of_task(draft, task)
        if isinstance(event, TimerFired):
            _drop_timer(draft, event)
        elif isinstance(event, ToldEvent):
            plainly.say_of_event(draft, event.payload)
        is_direct = queued.type == "user_message"
    draft.note("gave_up", f"after {state.attempt} attempts")
    draft.outcome = "failed"
    if is_direct:
        speech.say(draft, APOLOGY, Sway.NONE, is_autonomous=False)
        draft.row_text("assistant", "agent", APOLOGY)
    return draft


APOLOGY = "Something went wrong on my side while I worked on your message, so I gave up on it."
