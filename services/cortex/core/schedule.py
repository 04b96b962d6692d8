"""The tools that the core answers by itself: schedule_followup, cancel_followup, send_message.

They decide effects and touch nothing, so their results stand in the same turn as the call.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from vigil.contracts import SOCKET, FollowUp, ToolUseBlock

from ..tools import TOOLS, CancelFollowup, ScheduleFollowup, SendMessage
from .draft import Draft

ONLY_THE_PERSON: Final = (
    "This exchange took in content from outside. Reminders that are kept are the person's: only "
    "they can ask for one, change or cancel it."
)
OVERTAKEN: Final = (
    "Not scheduled: the person has written again meanwhile, and that ends all follow-ups that they "
    "didn't ask you to keep. Their message is answered next; plan it then, if it still fits."
)
Result = tuple[str, bool]
"""What the model reads, and whether it is an error that it can correct."""


def run_tool(draft: Draft, call: ToolUseBlock) -> Result:
    """Carry out one tool call on the draft."""
    try:
        arguments: Any = msgspec.convert(call.input, TOOLS[call.name])
    except msgspec.ValidationError as error:
        return f"The arguments don't fit the schema: {error}", True
    match arguments:
        case ScheduleFollowup():
            return _schedule(draft, arguments)
        case CancelFollowup():
            return _cancel(draft, arguments)
        case SendMessage():
            return _send(draft, arguments)
        case _:
            raise AssertionError(f"{call.name} is listed but not served")


def _schedule(draft: Draft, arguments: ScheduleFollowup) -> Result:
    timer_id = arguments.timer_id or f"followup-{draft.state.effects + 1}"
    fire_at = _fire_at(draft.moment.now, arguments)
    if isinstance(fire_at, str):
        return fire_at, True
    loop = draft.loop
    if loop.is_tainted and (arguments.keep or _is_kept(draft, timer_id)):
        return ONLY_THE_PERSON, True
    keep = arguments.keep and (loop.is_direct or loop.is_ordered)
    problem = _problem(draft, timer_id, arguments, keep=keep)
    if problem is not None:
        return problem, True
    if not keep and draft.is_overtaken:
        draft.note("void", "the person wrote before it was planned", timer_id)
        return OVERTAKEN, True
    draft.open_follow_up(
        timer_id,
        FollowUp(
            generation=draft.ordinal,
            fire_at=fire_at,
            reason=arguments.reason,
            message=arguments.message,
            keep=keep,
            is_tainted=loop.is_tainted,
        ),
    )
    kind = "reminder (kept until it fires or is cancelled)" if keep else "follow-up"
    return f"Scheduled {kind} {timer_id!r} for {fire_at.isoformat()}.", False


def _fire_at(now: datetime, arguments: ScheduleFollowup) -> datetime | str:
    if (arguments.delay_seconds is None) == (arguments.fire_at is None):
        return "Give either delay_seconds or fire_at."
    if arguments.fire_at is not None:
        return arguments.fire_at.astimezone(UTC)
    try:
        return now + timedelta(seconds=arguments.delay_seconds or 0.0)
    except OverflowError:
        return "delay_seconds is further away than the calendar goes."


def _problem(draft: Draft, timer_id: str, arguments: ScheduleFollowup, *, keep: bool) -> str | None:
    if timer_id.startswith("_"):
        return "A timer_id may not start with '_'."
    if not keep and not draft.policy.autonomy_enabled:
        return "Autonomy is switched off: only reminders that the person asked for are kept."
    others = [f for name, f in draft.state.follow_ups.items() if name != timer_id]
    if len(others) >= draft.policy.follow_ups_max:
        return f"{len(others)} follow-ups are open already; cancel some first."
    size = sum(_size(f.reason, f.message) for f in others)
    if size + _size(arguments.reason, arguments.message) > draft.policy.follow_up_bytes_max:
        return "The open follow-ups hold too much text; use shorter messages."
    return None


def _size(reason: str, message: str | None) -> int:
    return len(reason.encode()) + len((message or "").encode())


def _is_kept(draft: Draft, timer_id: str) -> bool:
    follow_up = draft.state.follow_ups.get(timer_id)
    return follow_up is not None and follow_up.keep


def _cancel(draft: Draft, arguments: CancelFollowup) -> Result:
    if draft.loop.is_tainted and _is_kept(draft, arguments.timer_id):
        return ONLY_THE_PERSON, True
    if draft.close_follow_up(arguments.timer_id) is None:
        return f"No follow-up {arguments.timer_id!r} is open.", True
    draft.note("cancelled", "the agent cancelled it", arguments.timer_id)
    return f"Cancelled {arguments.timer_id!r}.", False


def _send(draft: Draft, arguments: SendMessage) -> Result:
    loop, channel = draft.loop, arguments.channel
    problem = _channel_problem(draft, channel)
    if problem is not None:
        return problem, True
    blocked = draft.say(
        arguments.text,
        is_autonomous=not loop.is_direct,
        is_ordered=draft.is_ordered,
        tag=loop.tag,
        fence=loop.fence,
        channel=channel,
    )
    if blocked is not None:
        return f"Not sent: {blocked.text}.", True
    draft.update_loop(sends=loop.sends + 1)
    return "Sent.", False


def _channel_problem(draft: Draft, channel: str | None) -> str | None:
    policy = draft.policy
    if channel is None:
        return None
    if channel not in (SOCKET, *policy.channels):
        valid = ", ".join((SOCKET, *policy.channels))
        return f"There is no channel named {channel!r}; there is: {valid}."
    usual = SOCKET if draft.loop.is_direct else policy.route
    if draft.loop.is_tainted and channel != usual:
        return (
            "This exchange took in content from outside, which may not choose a channel. "
            "Leave `channel` out."
        )
    return None
