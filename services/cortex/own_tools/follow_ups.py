"""schedule_followup and cancel_followup: coming back to the person later.

The person's reminders are theirs: a loop that content from outside has a part in asks them before
it makes, changes or cancels one, if they began or ordered it, and else is refused.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec

from vigil.contracts import FollowUp
from vigil.contracts.arguments import Arguments
from vigil.settings.hours import UNENDING
from vigil.words.amounts import about
from vigil.zones.wall import END, dated, local

from ..core import gates
from ..core.draft import Draft
from ..core.pending.tasks import shortened
from ..core.tools.declaration import Leave, OwnCall, Result, tool

ONLY_THE_PERSON: Final = (
    "This exchange took in content from outside. Reminders that are kept are the person's: only "
    "they can ask for one, change or cancel it."
)
OVERTAKEN: Final = (
    "Not scheduled: the person has written again meanwhile, and that ends all follow-ups that they "
    "didn't ask you to keep. Their message is answered next; plan it then, if it still fits."
)
LATER: Final = (
    " That is later than you wanted: you planned {count} exchanges in a row, and the person heard "
    "of none. Say something, or let it rest."
)
DAY: Final = timedelta(days=1)
BEYOND: Final = f"That is further away than the calendar goes: it must be before {END.year}."
PAST_S: Final = 60.0
"""What is due so long ago was hardly meant so."""
NAMED_MAX: Final = 300
"""Characters of a reminder that a request names."""

TimerId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class ScheduleFollowup(Arguments, frozen=True, kw_only=True):
    """Come back to the person later.

    Give delay_seconds or fire_at. With `message`, exactly that text is sent; without it you are
    asked again then, and may stay silent. Set keep to true only for a reminder that the person
    explicitly asked for: it survives their next message. Everything else is dropped as soon as
    they write. The same timer_id replaces the earlier one.
    """

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    timer_id: TimerId | None = None
    delay_seconds: Annotated[float, msgspec.Meta(ge=-3_155_760_000, le=3_155_760_000)] | None = None
    fire_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    message: Annotated[str, msgspec.Meta(min_length=1, max_length=16000)] | None = None
    keep: bool = False


class CancelFollowup(Arguments, frozen=True, kw_only=True):
    """Cancel an open follow-up or reminder by its timer_id."""

    timer_id: TimerId


# ---------------------------------------------------------------- whose reminder it is


def _kept(draft: Draft, timer_id: str | None) -> FollowUp | None:
    follow_up = draft.state.follow_ups.get(timer_id or "")
    return follow_up if follow_up is not None and follow_up.keep else None


def _is_reminder(given: ScheduleFollowup, draft: Draft) -> bool:
    return given.keep or _kept(draft, given.timer_id) is not None


def _ends_reminder(given: CancelFollowup, draft: Draft) -> bool:
    return _kept(draft, given.timer_id) is not None


def _loss(draft: Draft, timer_id: str | None, what: str) -> str:
    """Say which reminder of theirs the person would give up: its id alone tells them nothing."""
    lost = _kept(draft, timer_id)
    if lost is None:
        return ""
    return f"it {what} your reminder: {shortened(lost.message or lost.reason, NAMED_MAX)}"


# ---------------------------------------------------------------- schedule_followup


def _is_kept(given: ScheduleFollowup, call: OwnCall, draft: Draft) -> bool:
    """Whether it is to survive the person's next message: they ordered it, or accepted it."""
    return given.keep and (call.is_accepted or draft.loop.is_direct or draft.loop.is_ordered)


def _obstacle(given: ScheduleFollowup, call: OwnCall, draft: Draft) -> str | None:
    fire_at = _fire_at(given, call.asked_at)
    if isinstance(fire_at, str):
        return fire_at
    if given.timer_id is not None and given.timer_id.startswith("_"):
        return "A timer_id may not start with '_'."
    if not _is_kept(given, call, draft) and not draft.policy.autonomy_enabled:
        return "Autonomy is switched off: only reminders that the person asked for are kept."
    return _no_room(given, draft)


def _no_room(given: ScheduleFollowup, draft: Draft) -> str | None:
    others = [f for name, f in draft.state.follow_ups.items() if name != given.timer_id]
    if len(others) >= draft.policy.follow_ups_max:
        return f"{len(others)} follow-ups are open already; cancel some first."
    size = sum(_size(f.reason, f.message) for f in others)
    if size + _size(given.reason, given.message) > draft.policy.follow_up_bytes_max:
        return "The open follow-ups hold too much text; use shorter messages."
    return None


def _size(reason: str, message: str | None) -> int:
    return len(reason.encode()) + len((message or "").encode())


def _fire_at(given: ScheduleFollowup, asked_at: datetime) -> datetime | str:
    """Return when it is due, or why that can't be told."""
    if (given.delay_seconds is None) == (given.fire_at is None):
        return "Give either delay_seconds or fire_at."
    try:
        if given.fire_at is not None:
            at = given.fire_at.astimezone(UTC)
        else:
            at = asked_at + timedelta(seconds=given.delay_seconds or 0.0)
    except OverflowError:
        return BEYOND
    return at if at < END else BEYOND


def _id_of(given: ScheduleFollowup, call: OwnCall, draft: Draft) -> str:
    """Return its id, which later loops are shown: who was swayed names none anew."""
    is_known = given.timer_id in draft.state.follow_ups
    if given.timer_id is None or (call.sway.is_outside and not is_known):
        return _free_id(draft)
    return given.timer_id


def _free_id(draft: Draft) -> str:
    """Return a name that no open follow-up has: one without a name replaces none."""
    numbers = itertools.count(draft.state.effects + 1)
    names = (f"followup-{number}" for number in numbers)
    return next(name for name in names if name not in draft.state.follow_ups)


@tool(
    risk="write",
    profiles=("channel",),
    obstacle=_obstacle,
    leave=Leave(
        is_needed=_is_reminder,
        refusal=ONLY_THE_PERSON,
        loss=lambda given, draft: _loss(draft, given.timer_id, "takes the place of"),
    ),
    aims={"fire_at": "detail"},
)
def schedule_followup(given: ScheduleFollowup, call: OwnCall, draft: Draft) -> Result:
    """Open a follow-up, or a reminder that is kept until it fires or is cancelled."""
    keep = _is_kept(given, call, draft)
    if not (keep or call.is_accepted) and draft.is_overtaken:
        draft.note("void", "the person wrote before it was planned", given.timer_id)
        return OVERTAKEN, True
    timer_id = _id_of(given, call, draft)
    asked_at = _fire_at(given, call.asked_at)
    if isinstance(asked_at, str):
        raise AssertionError(asked_at)
    fire_at = asked_at
    if given.message is None:
        fire_at = _apart(asked_at, timer_id, draft, is_ordered=keep)
    draft.open_follow_up(
        timer_id,
        FollowUp(
            generation=draft.ordinal,
            fire_at=fire_at,
            reason=given.reason,
            message=given.message,
            keep=keep,
            is_tainted=call.sway.is_outside,
        ),
    )
    kind = "reminder (kept until it fires or is cancelled)" if keep else "follow-up"
    zone = draft.moment.hours.zone
    when = f"{dated(fire_at, zone)} ({zone})"
    other = _past(fire_at, call.asked_at) + _moved(fire_at, draft)
    if fire_at > asked_at:
        other += LATER.format(count=draft.state.counters.asked)
    return f"Scheduled {kind} {timer_id!r} for {when}.{other}", False


def _apart(fire_at: datetime, timer_id: str, draft: Draft, *, is_ordered: bool) -> datetime:
    """Return when the model may be asked again, if nobody heard of what it planned so far."""
    later_s = gates.later_s(draft.state.counters, is_ordered=is_ordered)
    if not later_s:
        return fire_at
    others = [
        one.fire_at
        for name, one in draft.state.follow_ups.items()
        if one.message is None and name != timer_id
    ]
    soonest = max([draft.moment.now, *others]) + timedelta(seconds=later_s)
    return max(fire_at, min(soonest, END - DAY))


def _past(fire_at: datetime, asked_at: datetime) -> str:
    """Say that it's due already: models take years and days from memory."""
    ago_s = (asked_at - fire_at).total_seconds()
    if ago_s < PAST_S:
        return ""
    return (
        f" That was {about(ago_s)} ago: it's due as soon as this exchange ends, and never again. "
        "If the person means a time to come, schedule it anew under this timer_id, with the date "
        "from the situation."
    )


def _moved(fire_at: datetime, draft: Draft) -> str:
    """Say when it comes instead, if quiet hours or a pause will hold it back."""
    hours, at = draft.moment.hours, max(fire_at, draft.moment.now)
    until = hours.held_until(at)
    if until is None:
        return ""
    pause = hours.paused_until(at)
    if pause is not None:
        what = "pause is" if pause == until else "pause and quiet hours are"
        end = "" if until >= UNENDING else f", {until.astimezone(hours.zone):%Y-%m-%d %H:%M}"
        return f" It comes when the person's {what} over{end}: tell them."
    due, comes = local(fire_at, hours.zone), until.astimezone(hours.zone)
    return (
        f" It comes at {comes:%H:%M} instead of {due:%H:%M} ({hours.zone}), because of the "
        "person's quiet hours: tell them."
    )


# ---------------------------------------------------------------- cancel_followup


def _is_missing(given: CancelFollowup, call: OwnCall, draft: Draft) -> str | None:
    if given.timer_id in draft.state.follow_ups:
        return None
    return f"No follow-up {given.timer_id!r} is open."


@tool(
    risk="write",
    profiles=("channel",),
    obstacle=_is_missing,
    leave=Leave(
        is_needed=_ends_reminder,
        refusal=ONLY_THE_PERSON,
        loss=lambda given, draft: _loss(draft, given.timer_id, "ends"),
    ),
    aims={"timer_id": "which"},
)
def cancel_followup(given: CancelFollowup, call: OwnCall, draft: Draft) -> Result:
    """Close an open follow-up."""
    draft.close_follow_up(given.timer_id)
    draft.note("cancelled", "the agent cancelled it", given.timer_id)
    return f"Cancelled {given.timer_id!r}.", False
