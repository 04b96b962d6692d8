"""What is said without a model: what the person ordered goes out, late and plainly (SPEC S-6, S-7).

A reminder that is kept ends only by cancelling it, and a result that was ordered is waited for. If
the model is away, out of budget, declines, or its step kills, a text that is made here stands in.
"""

from __future__ import annotations

from msgspec.structs import replace

from vigil.contracts import AGENT_FOLLOW_UP, FollowUp, Task, TimerPayload, ToldPayload

from .. import speech
from .. import sway as sways
from ..draft import OUTSIDE, Draft
from ..sway import Sway


def of_loop(draft: Draft) -> str:
    """Return what to say in the place of the open loop's model; "" if nobody ordered anything, or
    it was said."""
    loop = draft.loop
    if not loop.is_ordered or draft.has_spoken:
        return ""
    if loop.follow_up is not None:
        return of_follow_up(loop.timer_id or "", loop.follow_up)
    task = draft.state.tasks.get(loop.task_id)
    return "" if task is None else of_task(task)


def of_follow_up(timer_id: str, follow_up: FollowUp) -> str:
    """
    >>> from datetime import UTC, datetime
    >>> of_follow_up("tea", FollowUp(generation=1, fire_at=datetime.now(UTC), reason="drink tea"))
    'Reminder: drink tea'
    """
    if follow_up.message is not None:
        return follow_up.message
    if timer_id.startswith(OUTSIDE):
        return "What you asked for came in meanwhile, but I can't put it into words. Please ask me."
    return f"Reminder: {follow_up.reason}".strip()


def of_task(task: Task) -> str:
    return f"This is over, but I can't put it into words. Please ask me: {task.title or task.tool}"


def say_of_loop(draft: Draft) -> None:
    """Say it in the open loop, which is about to end without its model."""
    text, loop = of_loop(draft), draft.loop
    if not text:
        return
    blocked = speech.say(
        draft,
        text,
        draft.sway,
        is_autonomous=True,
        is_ordered=draft.is_ordered,
        tag=loop.tag,
        fence=loop.fence,
    )
    if blocked is None:
        draft.row_text("assistant", "agent", text)


def say_of_timer(draft: Draft, payload: TimerPayload) -> None:
    """Say a kept reminder whose event is passed over; it is open still."""
    follow_up = draft.state.follow_ups.get(payload.timer_id)
    if follow_up is None or not follow_up.keep or follow_up.generation != payload.generation:
        return
    text = of_follow_up(payload.timer_id, follow_up)
    draft.close_follow_up(payload.timer_id, has_fired=True)
    if speech.gate(draft, is_ordered=True) is None and speech.held_until(draft) is not None:
        speech.hold(draft, payload.timer_id, replace(follow_up, message=text))
        return
    _say(draft, text, sways.of(follow_up), channel=follow_up.channel)


def say_of_task(draft: Draft, task: Task) -> None:
    """Say that what the person ordered is over, whose event is passed over."""
    if task.is_ordered:
        _say(draft, of_task(task), sways.of(task))


def say_of_event(draft: Draft, payload: ToldPayload) -> None:
    """Say that there is something to say, whose event is passed over."""
    if payload.is_ordered:
        text = f"This is over, but I can't put it into words: {payload.title or payload.what}"
        _say(draft, text, sways.of(payload))


def _say(draft: Draft, text: str, sway: Sway, *, channel: str | None = None) -> None:
    blocked = speech.say(
        draft,
        text,
        sway,
        is_autonomous=True,
        is_ordered=True,
        tag=AGENT_FOLLOW_UP,
        channel=channel,
    )
    if blocked is None and speech.held_until(draft) is None:
        draft.row_text("assistant", "agent", text)
