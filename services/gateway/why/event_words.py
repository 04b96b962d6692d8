"""Events in a sentence each: what came in, from whom. Pure."""

from __future__ import annotations

from typing import Final, assert_never

from vigil.contracts import Control, External, Tick, TimerFired, UserMessage

from .facts import clip
from .voice import Voice, quote

LATE_S: Final = 1.0
"""A timer that is later than this is told to be late."""


def event_words(
    event: UserMessage | TimerFired | External | Control | Tick, voice: Voice
) -> tuple[str, str]:
    """Return the name and the sentence of an event."""
    match event:
        case UserMessage():
            return "message.in", f"{voice.start} wrote: {quote(event.payload.text)}"
        case TimerFired():
            return "timer.due", _due(event)
        case External():
            return "event.external", _external(event)
        case Control():
            return f"control.{event.payload.op}", voice.tell(_control(event, voice))
        case Tick():
            return "tick", "A regular tick came."
        case _:
            assert_never(event)


def _due(event: TimerFired) -> str:
    payload = event.payload
    late_s = (event.created_at - payload.fire_at).total_seconds()
    late = f", {late_s:.1f} s late" if late_s > LATE_S else ""
    if payload.kind == "deadline" and payload.timer_id == "_coalesce":
        return f"The wait for more messages was over{late}."
    if payload.kind == "deadline" and payload.timer_id == "_call":
        return f"The wait for tools was over{late}."
    if payload.kind == "deadline" and payload.timer_id == "_pause":
        return f"It was time to look whether the conversation had paused{late}."
    if payload.kind == "deadline":
        return f"The wait before the model is asked again was over{late}."
    return f"The follow-up {quote(payload.timer_id)} came due{late}."


def _external(event: External) -> str:
    payload = event.payload
    of = f" of the kind {clip(payload.kind, 80)}" if payload.kind else ""
    origin = f" from {clip(payload.origin, 80)}" if payload.origin else ""
    trust = "A trusted" if payload.is_trusted else "An untrusted"
    return (
        f"{trust} event{of}{origin} came in by {clip(payload.source, 80)}: {quote(payload.content)}"
    )


def _control(event: Control, voice: Voice) -> str:
    payload = event.payload
    why = f" ({clip(payload.reason)})" if payload.reason else ""
    match payload.op:
        case "stop":
            return f"{voice.start} asked to stop the running turn{why}."
        case "cancel_timer":
            return f"{voice.start} cancelled {quote(payload.timer_id or '')}{why}."
        case "clear_follow_ups":
            return f"All follow-ups but reminders were cleared{why}."
        case _:
            assert_never(payload.op)
