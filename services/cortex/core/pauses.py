"""What is done when a conversation pauses: the model is asked once what of it to remember.

When a direct exchange ends, one deadline is set (`memory.pause_s`). If more was said until it
fires, or something is still open, it is set anew: a busy conversation costs one timer in a pause's
length, not one for each message. Then a loop of `profiles.look_back` opens. It says nothing, counts
for no gate, adds no rows, and gives way to whatever comes in. Without a word of the person since
the last time nothing is due, so no model is ever asked for nothing.
"""

from __future__ import annotations

from datetime import datetime

from vigil.contracts import Cause, Pause, TimerPayload

from ..model import ModelAnswer
from . import loops, speech
from .context.offers import save_all, things
from .draft import INSTANT, PAUSE_TIMER, Draft, notifications
from .draft.chunk import Offer
from .draft.kinds import profile_of
from .work.loop_end import end_loop


def is_ended_by(pause: Pause | None, payload: TimerPayload) -> bool:
    """Whether that deadline is the one of this pause."""
    if pause is None or payload.timer_id != PAUSE_TIMER:
        return False
    return payload.generation == pause.generation


def receive(draft: Draft, cause: Cause, payload: TimerPayload, pause: Pause) -> None:
    """Look whether the conversation pauses, now that the deadline of `pause` is over."""
    state = draft.state
    if draft.policy.pause_s == 0 or state.unsaved_from == 0:
        draft.update(pause=None, unsaved_from=0)
        draft.note("stale_deadline", "nothing is to be saved", payload.timer_id)
        draft.ended.append(cause.id)
    elif payload.fire_at < pause.due_at:
        _put_off(draft, cause, pause.due_at, "more was said since")
    elif state.loop is not None or state.queue:
        _put_off(draft, cause, loops.next_pause_at(draft), "something is still open")
    elif draft.moment.is_paused:
        _put_off(draft, cause, loops.next_pause_at(draft), "everything proactive is paused")
    elif (until := speech.paused_until(draft)) is not None:
        _put_off(draft, cause, until, speech.holds_by(draft), draft.moment.hours_at)
    else:
        draft.update(pause=None)
        loops.begin(draft, cause, is_direct=False, purpose=profile_of("look_back").purpose)


def _put_off(
    draft: Draft, cause: Cause, due_at: datetime, why: str, hours_at: datetime | None = None
) -> None:
    loops.await_pause(draft, due_at, hours_at)
    draft.note("pause_put_off", f"{why}; looked at again at {due_at:{INSTANT}}")
    draft.ended.append(cause.id)


def give_way(draft: Draft, why: str) -> None:
    """Close a loop that looks back, because something came in; the next pause takes it up."""
    cause = draft.loop.cause
    end_loop(draft, None)
    draft.note("save_put_off", why, cause.id)
    if draft.state.pause is None and draft.policy.pause_s:
        loops.await_pause(draft, loops.next_pause_at(draft))


def forget(draft: Draft, payload: TimerPayload) -> None:
    """Close the wait for a deadline that is passed over; the next exchange begins another."""
    if is_ended_by(draft.state.pause, payload):
        draft.update(pause=None)


def conclude(draft: Draft, answer: ModelAnswer, offer: Offer) -> None:
    """Hand to memory what the model wants to remember, and end the loop."""
    draft.update_loop(calls=draft.loop.calls + 1, retries=0)
    draft.usage.append(answer.usage)
    if answer.stop_reason == "refusal":
        draft.note("refusal", "the model declined to answer")
    saved = save_all(draft, answer, offer)
    if saved:
        draft.note("saved", f"{things(saved)} handed on")
    else:
        draft.note("nothing_to_save", "the model found nothing to remember")
    notifications.notify_of_digest(
        draft, [r for c in offer.chunks if not c.is_tainted for r in c.rows]
    )
    _end(draft, offer)


def skip(draft: Draft, offer: Offer) -> None:
    """End the loop without asking: of what was said nothing of the person's is left."""
    draft.note("nothing_to_save", "nothing that the person said is left of it")
    _end(draft, offer)


def _end(draft: Draft, offer: Offer) -> None:
    end_loop(draft, "saved")
    draft.update(unsaved_from=offer.next_from)
    if offer.next_from:
        loops.await_pause(draft, loops.next_pause_at(draft))
        draft.note("save_cut", "it was too much for one call; the rest follows at the next pause")
