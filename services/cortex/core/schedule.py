"""The tools that the core answers by itself: schedule_followup, cancel_followup, send_message.

They decide effects and touch nothing, so their results stand in the same turn as the call. What the
person's reminders and channels are is theirs: a loop that content from outside has a part in asks
them first, if they began or ordered it, and else is refused.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from vigil.contracts import SOCKET, FollowUp, Risk

from ..thought.tools import TOOLS, CancelFollowup, ScheduleFollowup, SendMessage
from . import speech
from .authority import SWAYED_BY
from .draft import Draft
from .sway import Sway
from .tasks import shortened

ONLY_THE_PERSON: Final = (
    "This exchange took in content from outside. Reminders that are kept are the person's: only "
    "they can ask for one, change or cancel it."
)
OVERTAKEN: Final = (
    "Not scheduled: the person has written again meanwhile, and that ends all follow-ups that they "
    "didn't ask you to keep. Their message is answered next; plan it then, if it still fits."
)
NO_CHANNEL: Final = (
    "This exchange took in content from outside, which may not choose a channel. "
    "Leave `channel` out."
)
NAMED_MAX: Final = 300
"""Characters of a reminder that a request names."""
Result = tuple[str, bool]
"""What the model reads, and whether it is an error that it can correct."""
Wish = ScheduleFollowup | CancelFollowup | SendMessage


def read(tool: str, given: dict[str, Any]) -> Wish | str:
    """Return the arguments of a call of these tools, or what is wrong with them."""
    kind: Any = TOOLS[tool]
    try:
        wish: Wish = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        return f"The arguments don't fit the schema: {error}"
    return wish


def refusal(draft: Draft, wish: Wish) -> str | None:
    """Return why a wish of the open loop can't be granted, with the person's leave or without."""
    loop = draft.loop
    if loop.is_direct or loop.is_ordered or not is_the_persons(draft, wish):
        return obstacle(draft, wish, keep=_may_keep(draft, wish), now=draft.moment.now)
    return NO_CHANNEL if isinstance(wish, SendMessage) else ONLY_THE_PERSON


def is_the_persons(draft: Draft, wish: Wish) -> bool:
    """Whether only the person may decide it, since content from outside has a part in it."""
    if not draft.sway.is_outside:
        return False
    match wish:
        case ScheduleFollowup(timer_id=timer_id, keep=keep):
            return keep or _is_kept(draft, timer_id)
        case CancelFollowup(timer_id=timer_id):
            return _is_kept(draft, timer_id)
        case SendMessage(channel=channel):
            usual = SOCKET if draft.loop.is_direct else draft.policy.route
            return channel not in (None, usual)


def reason_to_ask(draft: Draft, wish: Wish) -> str:
    """Return why the person is asked, and which reminder of theirs they would give up: its id
    alone tells them nothing."""
    lost = draft.state.follow_ups.get(getattr(wish, "timer_id", None) or "")
    if lost is None or not lost.keep:
        return SWAYED_BY
    what = "ends" if isinstance(wish, CancelFollowup) else "takes the place of"
    text = shortened(lost.message or lost.reason, NAMED_MAX)
    return f"{SWAYED_BY}; it {what} your reminder: {text}"


def risk_of(wish: Wish) -> Risk:
    """Return the risk by which the person is asked."""
    return "external" if isinstance(wish, SendMessage) else "write"


def obstacle(draft: Draft, wish: Wish, *, keep: bool, now: datetime) -> str | None:
    """Return why a wish can't be granted as things are, whoever it is of."""
    match wish:
        case ScheduleFollowup():
            fire_at = _fire_at(now, wish)
            return fire_at if isinstance(fire_at, str) else _problem(draft, wish, keep=keep)
        case CancelFollowup(timer_id=timer_id):
            if timer_id not in draft.state.follow_ups:
                return f"No follow-up {timer_id!r} is open."
            return None
        case SendMessage(channel=channel):
            return _channel_problem(draft, channel)


def carry_out(draft: Draft, wish: Wish) -> Result:
    """Grant a wish of the open loop, which may be."""
    match wish:
        case ScheduleFollowup():
            keep = _may_keep(draft, wish)
            if not keep and draft.is_overtaken:
                draft.note("void", "the person wrote before it was planned", wish.timer_id)
                return OVERTAKEN, True
            return _schedule(draft, wish, draft.sway, keep=keep, now=draft.moment.now), False
        case CancelFollowup():
            return _cancel(draft, wish), False
        case SendMessage():
            return _send(draft, wish)


def carry_out_for_person(draft: Draft, wish: Wish, asked_at: datetime) -> None:
    """Grant what the person accepted word for word: it is theirs from now on, and unmarked.

    Args:
        asked_at: when they were asked; from then on a delay counts.
    """
    match wish:
        case ScheduleFollowup(keep=keep):
            _schedule(draft, wish, Sway.NONE, keep=keep, now=asked_at)
        case CancelFollowup():
            _cancel(draft, wish)
        case SendMessage(text=text, channel=channel):
            speech.say(draft, text, Sway.NONE, is_autonomous=False, channel=channel)


def _may_keep(draft: Draft, wish: Wish) -> bool:
    is_wanted = isinstance(wish, ScheduleFollowup) and wish.keep
    return is_wanted and (draft.loop.is_direct or draft.loop.is_ordered)


def _schedule(
    draft: Draft, arguments: ScheduleFollowup, sway: Sway, *, keep: bool, now: datetime
) -> str:
    timer_id = arguments.timer_id or _free_id(draft)
    fire_at = _fire_at(now, arguments)
    if isinstance(fire_at, str):
        raise AssertionError(fire_at)
    draft.open_follow_up(
        timer_id,
        FollowUp(
            generation=draft.ordinal,
            fire_at=fire_at,
            reason=arguments.reason,
            message=arguments.message,
            keep=keep,
            is_tainted=sway.is_outside,
        ),
    )
    kind = "reminder (kept until it fires or is cancelled)" if keep else "follow-up"
    return f"Scheduled {kind} {timer_id!r} for {fire_at.isoformat()}."


def _free_id(draft: Draft) -> str:
    """Return a name that no open follow-up has: one without a name replaces none."""
    numbers = itertools.count(draft.state.effects + 1)
    names = (f"followup-{number}" for number in numbers)
    return next(name for name in names if name not in draft.state.follow_ups)


def _fire_at(now: datetime, arguments: ScheduleFollowup) -> datetime | str:
    if (arguments.delay_seconds is None) == (arguments.fire_at is None):
        return "Give either delay_seconds or fire_at."
    if arguments.fire_at is not None:
        return arguments.fire_at.astimezone(UTC)
    try:
        return now + timedelta(seconds=arguments.delay_seconds or 0.0)
    except OverflowError:
        return "delay_seconds is further away than the calendar goes."


def _problem(draft: Draft, arguments: ScheduleFollowup, *, keep: bool) -> str | None:
    timer_id = arguments.timer_id
    if timer_id is not None and timer_id.startswith("_"):
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


def _is_kept(draft: Draft, timer_id: str | None) -> bool:
    follow_up = draft.state.follow_ups.get(timer_id or "")
    return follow_up is not None and follow_up.keep


def _cancel(draft: Draft, arguments: CancelFollowup) -> str:
    draft.close_follow_up(arguments.timer_id)
    draft.note("cancelled", "the agent cancelled it", arguments.timer_id)
    return f"Cancelled {arguments.timer_id!r}."


def _send(draft: Draft, arguments: SendMessage) -> Result:
    loop = draft.loop
    blocked = speech.say(
        draft,
        arguments.text,
        draft.sway,
        is_autonomous=not loop.is_direct,
        is_ordered=draft.is_ordered,
        tag=loop.tag,
        fence=loop.fence,
        channel=arguments.channel,
    )
    if blocked is not None:
        return f"Not sent: {blocked.text}.", True
    draft.update_loop(sends=loop.sends + 1)
    return "Sent.", False


def _channel_problem(draft: Draft, channel: str | None) -> str | None:
    channels = (SOCKET, *draft.policy.channels)
    if channel is None or channel in channels:
        return None
    return f"There is no channel named {channel!r}; there is: {', '.join(channels)}."
