"""Events in a sentence each: what came in, from whom. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from vigil.contracts import (
    Control,
    ControlOp,
    ControlPayload,
    External,
    Tick,
    TimerFired,
    UserMessage,
    Verdict,
)

from .cutting import clip
from .voice import Voice, quote

LATE_S: Final = 1.0
"""A timer that is later than this is told to be late."""
_RETRY: Final = "The wait before the model is asked again was over"
_DEADLINES: Final = {
    "_coalesce": "The wait for more messages was over",
    "_call": "The wait for tools was over",
    "_pause": "It was time to look whether the conversation had paused",
    "_child": "It was time to look whether a session that it started is still at it",
    "_approval": "The time for a verdict on a request was over",
}
"""Name of a deadline -> what it means; any other is that of a model call."""


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
    if payload.kind == "deadline":
        name = payload.timer_id.partition("-")[0]
        return f"{_DEADLINES.get(name, _RETRY)}{late}."
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
    return _ORDERS[event.payload.op](event.payload, voice)


def _why(payload: ControlPayload) -> str:
    return f" ({clip(payload.reason)})" if payload.reason else ""


def _start(payload: ControlPayload, voice: Voice) -> str:
    start = payload.start
    if start is None:
        return "The session was started."
    taint = "; it descends from untrusted content" if start.is_tainted else ""
    if not start.parent:
        return f"The job was handed in: {quote(start.prompt)}{taint}"
    return f"The session was started for: {quote(start.prompt)}{taint}"


def _status(payload: ControlPayload, voice: Voice) -> str:
    status = payload.status
    if status is None:
        return "A session that it started told how it goes."
    how = "waits for a person" if status.state == "asking" else "told how it goes"
    return f"A session that it started {how}: {quote(status.text)}"


def _approval(payload: ControlPayload, voice: Voice) -> str:
    decision = payload.decision
    if decision is None:
        return f"{voice.start} decided on a request."
    who = voice.start if decision.by == voice.person else clip(decision.by, 64)
    text = f": {quote(decision.text)}" if decision.text else "."
    if decision.input is not None:
        text = f": {quote(msgspec.json.encode(decision.input).decode())}"
    return f"{who} {_VERDICTS[decision.verdict]}{text}"


_VERDICTS: Final[dict[Verdict, str]] = {
    "accept": "accepted the request",
    "edit": "accepted the request with other arguments",
    "answer": "answered the request",
    "reject": "rejected the request",
}
_ORDERS: Final[dict[ControlOp, Callable[[ControlPayload, Voice], str]]] = {
    "stop": lambda told, voice: f"{voice.start} asked to stop the running turn{_why(told)}.",
    "cancel_timer": lambda told, voice: (
        f"{voice.start} cancelled {quote(told.timer_id or '')}{_why(told)}."
    ),
    "clear_follow_ups": lambda told, _: f"All follow-ups but reminders were cleared{_why(told)}.",
    "start": _start,
    "cancel": lambda told, _: f"The session was cancelled{_why(told)}.",
    "status": _status,
    "approval": _approval,
}
