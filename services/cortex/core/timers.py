"""What a timer does that fired: a follow-up or a reminder is due, or a deadline is over."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from vigil.contracts import Cause, FollowUp, Loop, TimerBlock, TimerFired, TimerPayload
from vigil.contracts.base import SET_BACK_MIN

from . import gates, home, loops, pauses, person, speech
from . import sway as sways
from .draft import OUTSIDE, RETRY_TIMER, Draft
from .queue import enqueue
from .tools import calls
from .work import approvals, children
from .work.loop_end import end_loop


def receive(draft: Draft, cause: Cause, event: TimerFired) -> None:
    """Fold a timer's event; it counts only if its generation is open."""
    payload = event.payload
    if payload.kind == "deadline":
        _deadline(draft, cause, event)
    elif draft.state.turns == 0:
        text = "the session's records were older than what is kept; it starts from its defaults"
        draft.note("state_expired", text, payload.timer_id)
    elif not _is_open(draft, payload):
        draft.note("stale_timer", "void, replaced or said before", payload.timer_id)
    elif draft.is_aside:
        draft.make_way("a follow-up is due")
        fire(draft, cause, event)
    elif draft.state.loop is None and not draft.state.queue:
        fire(draft, cause, event)
    elif len(draft.state.queue) < draft.policy.queue_max or _is_kept(draft, payload):
        if cause.seq not in {q.seq for q in draft.state.queue}:
            enqueue(draft, cause)
    else:
        draft.close_follow_up(payload.timer_id, has_fired=True)
        draft.note("queue_full", "too many events are waiting in this session", payload.timer_id)
        draft.ended.append(cause.id)


def _is_open(draft: Draft, payload: TimerPayload) -> bool:
    follow_up = draft.state.follow_ups.get(payload.timer_id)
    return follow_up is not None and follow_up.generation == payload.generation


def _is_kept(draft: Draft, payload: TimerPayload) -> bool:
    """Whether the person ordered it: whoever fills the queue, it waits for its turn. They are no
    more than may be open."""
    return draft.state.follow_ups[payload.timer_id].keep


def _awaits(loop: Loop | None, payload: TimerPayload) -> bool:
    """Whether the loop waits for this deadline to ask the model again."""
    if loop is None or loop.retry is None or payload.timer_id != RETRY_TIMER:
        return False
    return loop.retry.generation == payload.generation


def _deadline(draft: Draft, cause: Cause, event: TimerFired) -> None:
    payload = event.payload
    state = draft.state
    loop, waiting, pause, digest = state.loop, state.gathering, state.pause, state.digest
    if loop is not None and loop.retry is not None and _awaits(loop, payload):
        draft.update_loop(retry=None, retries=loop.retry.attempt)
        draft.cause = loop.cause
        draft.outcome = "begun"
    elif calls.are_ended_by(loop, payload):
        calls.expire(draft, cause)
    elif waiting is not None and person.is_ended_by(waiting, payload):
        person.end_wait(draft, waiting, payload.fire_at)
    elif pause is not None and pauses.is_ended_by(pause, payload):
        pauses.receive(draft, cause, payload, pause)
    elif digest is not None and home.is_ended_by(digest, payload):
        home.say_digest(draft, cause, digest)
    elif (approval := approvals.is_ended_by(draft, payload)) is not None:
        approvals.expire(draft, cause, event, approval)
    elif (task_id := children.awaited_by(draft, payload)) is not None:
        children.check_alive(draft, cause, event, task_id)
    else:
        draft.note("stale_deadline", "what it waited for is over", payload.timer_id)


def fire(draft: Draft, cause: Cause, event: TimerFired) -> None:
    """Let a due follow-up speak, ask the model, or say why not."""
    timer_id = event.payload.timer_id
    follow_up = draft.state.follow_ups.get(timer_id)
    if follow_up is None or not _is_open(draft, event.payload):
        draft.note("stale_timer", "void, replaced or said before", timer_id)
        draft.ended.append(cause.id)
        return
    refusal = _refusal(draft, timer_id, follow_up)
    draft.close_follow_up(timer_id, has_fired=True)
    if follow_up.held_from is not None and follow_up.held_from - draft.moment.now > SET_BACK_MIN:
        # It was due by a clock that was ahead and has been set back: it isn't yet.
        why = "the clock was set back"
        speech.hold(draft, timer_id, follow_up, follow_up.held_from, why)
        draft.outcome = "held"
        draft.ended.append(cause.id)
    elif refusal is not None:
        _refuse(draft, timer_id, follow_up, refusal)
        draft.ended.append(cause.id)
    elif speech.held_until(draft) is not None:
        speech.hold(draft, timer_id, follow_up)
        draft.outcome = "held"
        draft.ended.append(cause.id)
    else:
        _begin(draft, cause, timer_id, follow_up)


def _begin(draft: Draft, cause: Cause, timer_id: str, follow_up: FollowUp) -> None:
    draft.row("user", "timer", TimerBlock(timer_id=timer_id, follow_up=follow_up))
    loops.begin(draft, cause, is_direct=False, timer_id=timer_id, follow_up=follow_up)
    if follow_up.message is None:
        is_own = not timer_id.startswith(OUTSIDE)
        counters = draft.state.counters
        draft.update(counters=replace(counters, asked=counters.asked + 1 if is_own else 0))
        return
    draft.row_text("assistant", "agent", follow_up.message)
    loop = draft.loop
    speech.say(
        draft,
        follow_up.message,
        sways.of(follow_up),
        is_autonomous=True,
        is_ordered=loop.is_ordered,
        tag=loop.tag,
        fence=loop.fence,
        channel=follow_up.channel,
    )
    end_loop(draft, "answered")


def _refusal(draft: Draft, timer_id: str, follow_up: FollowUp) -> gates.Blocked | None:
    is_own_plan = not follow_up.keep and not timer_id.startswith(OUTSIDE)
    if is_own_plan and not draft.policy.autonomy_enabled:
        return gates.Blocked("disabled", "autonomy is switched off")
    return speech.gate(draft, is_ordered=follow_up.keep)


def _refuse(draft: Draft, timer_id: str, follow_up: FollowUp, refusal: gates.Blocked) -> None:
    """Drop a due follow-up, unless it is only for the cooldown that it comes too early.

    What was held back comes due together with others that were, and waits for its turn; what came
    too early by the agent's own plan is dropped.
    """
    if refusal.code == "cooldown" and follow_up.held_from is not None:
        left = timedelta(milliseconds=speech.cooldown_left_ms(draft))
        speech.hold(draft, timer_id, follow_up, draft.moment.now + left, "the cooldown")
        draft.outcome = "held"
        return
    draft.note(f"blocked_{refusal.code}", refusal.text, timer_id)
    draft.outcome = "blocked"


def drop(draft: Draft, payload: TimerPayload) -> Loop | None:
    """Close what waits for a timer that is passed over: it would wait for ever.

    Returns the loop that this ended, if one did.
    """
    if payload.kind == "follow_up":
        if _is_open(draft, payload):
            draft.close_follow_up(payload.timer_id, has_fired=True)
        return None
    loop, waiting = draft.state.loop, draft.state.gathering
    if waiting is not None and person.is_ended_by(waiting, payload):
        draft.update(gathering=None)
    pauses.forget(draft, payload)
    home.drop(draft, payload)
    is_child_of_loop = children.drop(draft, payload) or approvals.drop(draft, payload)
    is_of_loop = _awaits(loop, payload) or calls.are_ended_by(loop, payload) or is_child_of_loop
    if loop is None or not is_of_loop:
        return None
    end_loop(draft, "failed")
    return loop
