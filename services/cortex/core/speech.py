"""What a session says, unless the gates, quiet hours or a pause hold it back (SPEC S-7)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import SOCKET, Attachment, FollowUp, SendMessage, SendPayload, State
from vigil.settings.hours import UNENDING

from . import gates
from . import sway as sways
from .draft import INSTANT, OUTSIDE, Draft
from .draft.policy import Policy
from .sway import Sway

HELD: Final = "_held"
"""Begins the ids of follow-ups that are brought again, by no plan of their own."""
PAUSE_AGAIN_S: Final = 5.0
"""A held follow-up comes back this soon; the scheduler keeps it until the pause ends."""
UNENDING_AGAIN: Final = timedelta(days=1)
"""It's looked again so often at what a pause without an end holds."""


def say(
    draft: Draft,
    text: str,
    sway: Sway,
    *,
    is_autonomous: bool,
    is_ordered: bool = False,
    tag: str | None = None,
    fence: int | None = None,
    channel: str | None = None,
    is_firm: bool = False,
    asks: str = "",
    is_urgent: bool = False,
    attachments: tuple[Attachment, ...] = (),
) -> gates.Blocked | None:
    """Send `text`, unless the gates or the quiet hours say otherwise.

    `channel` None: autonomous messages go where the person wants them, others to the socket.
    `asks`: the request that it shows whole. `is_firm`: nothing puts it off or voids it.

    Returns the refusal, if it was blocked. A message held back by quiet hours or a pause
    becomes a timer with a fixed text, which names its files, and counts as sent. A session that
    is no conversation says nothing to the person: these are its last words.
    """
    if not draft.policy.profile.is_conversation:
        draft.last_words = text
        return None
    if is_autonomous:
        blocked = gate(draft, is_ordered=is_ordered)
        if blocked is None and not is_firm:
            blocked = _no_room(draft, text, is_ordered=is_ordered)
        if blocked is not None:
            draft.note(f"blocked_{blocked.code}", blocked.text)
            draft.is_dirty = True
            return blocked
        if not is_firm and held_until(draft) is not None:
            text = "\n".join((text, *(f"[{one.in_words}]" for one in attachments)))
            _hold_text(draft, text, sway, is_ordered=is_ordered, channel=channel)
            return None
    is_voidable = not (is_ordered or is_firm) if is_autonomous else draft.policy.is_reply_voidable
    payload = SendPayload(
        text=text,
        caused_by=draft.cause.id if draft.cause is not None else "",
        # What may be voided is fenced by what its loop knew; the rest by what is known now.
        fence=fence if is_voidable and fence is not None else draft.state.fence,
        previous=draft.state.last_send,
        is_autonomous=is_autonomous,
        is_voidable=is_voidable,
        tag=tag,
        channel=(to := _channel(draft, channel, is_autonomous=is_autonomous)),
        otherwise=_otherwise(draft, to) if is_autonomous and channel is None else (),
        is_tainted=sway.is_outside,
        asks=asks,
        is_urgent=is_urgent,
        attachments=attachments,
    )
    _send(draft, payload)
    if is_autonomous:
        _count(draft, is_ordered=is_ordered)
    return None


def _count(draft: Draft, *, is_ordered: bool) -> None:
    now_ms = draft.moment.now_ms
    counters = gates.count(draft.state.counters, is_ordered=is_ordered, now_ms=now_ms)
    draft.update(counters=counters)


def _send(draft: Draft, payload: SendPayload) -> None:
    effect, ordinal = draft.next_id("send_message", payload, payload.channel)
    draft.effects.append(SendMessage(id=effect, ordinal=ordinal, payload=payload))
    draft.update(last_send=effect)
    if payload.is_voidable:
        draft.update(unheard=(*draft.state.unheard, effect))


def route_of(policy: Policy, state: State, present: str | None = None) -> str:
    """Return where goes what is said unasked: the channel that the person set, else the one of
    their newest message. One that there is no more isn't taken; at last it is the socket.

    Of a team, one member's channel is not the others'.

    Args:
        present: the channel of their newest message in any thread; None: that of this one counts.
    """
    present = "" if policy.homes else state.channel if present is None else present
    there = (SOCKET, *policy.channels)
    return next((name for name in (policy.route, present) if name in there), SOCKET)


def usual(draft: Draft) -> str:
    """Return where goes what is said unasked now."""
    return route_of(draft.policy, draft.state, draft.moment.present)


def _otherwise(draft: Draft, channel: str) -> tuple[str, ...]:
    """Return what follows if a channel refuses: those that the person themselves wrote through
    here, so that nothing of theirs goes where others read it."""
    if channel == SOCKET or draft.policy.homes:
        return ()
    used = draft.state.channels
    return tuple(name for name in used if name in draft.policy.channels and name != channel)


def _channel(draft: Draft, named: str | None, *, is_autonomous: bool) -> str:
    """Return where a message goes; what would go where nothing is any more goes the usual way."""
    if named is None and not is_autonomous:
        return SOCKET
    wanted, there = named or draft.policy.route, (SOCKET, *draft.policy.channels)
    found = wanted if wanted in there else usual(draft)
    if wanted and found != wanted:
        draft.note("no_channel", f"there is no channel {wanted!r} any more; it goes to {found}")
    return found


def say_for_loop(
    draft: Draft,
    text: str,
    *,
    is_ordered: bool | None = None,
    channel: str | None = None,
    asks: str = "",
) -> gates.Blocked | None:
    """Send what the open loop has to say, as `say` does.

    Args:
        is_ordered: whether the gates let it pass as ordered; None: as the loop was.
    """
    loop = draft.loop
    attachments = () if asks else loop.attached
    if attachments:
        draft.update_loop(attached=())
    return say(
        draft,
        text,
        draft.sway,
        attachments=attachments,
        is_autonomous=not loop.is_direct,
        is_ordered=draft.is_ordered if is_ordered is None else is_ordered,
        tag=loop.tag,
        fence=loop.fence,
        channel=channel,
        asks=asks,
    )


def take_back(draft: Draft) -> None:
    """Take note of what the person's message came before: that was not said, and won't be."""
    sends = draft.state.unheard
    if sends:
        draft.unsaid += [effect for effect in sends if effect in draft.moment.unsaid]
        draft.update(unheard=())


def gate(draft: Draft, *, is_ordered: bool, can_wait: bool = False) -> gates.Blocked | None:
    return gates.check(
        draft.state.counters,
        is_ordered=is_ordered,
        is_locked=draft.state.is_locked,
        now_ms=draft.moment.now_ms,
        policy=draft.policy,
        can_wait=can_wait,
    )


def _no_room(draft: Draft, text: str, *, is_ordered: bool) -> gates.Blocked | None:
    """Refuse what can't be held back any more: it would travel in every turn until then."""
    if held_until(draft) is None or is_ordered:
        return None
    held = draft.state.follow_ups.values()
    size = sum(len(f.reason.encode()) + len((f.message or "").encode()) for f in held)
    is_full = len(held) >= draft.policy.follow_ups_max
    if is_full or size + len(text.encode()) > draft.policy.follow_up_bytes_max:
        return gates.Blocked("no_room", f"{holds_by(draft)}, and too much is put off already")
    return None


def cooldown_left_ms(draft: Draft) -> int:
    """How long the next message that the person didn't order has to wait."""
    counters, now_ms = draft.state.counters, draft.moment.now_ms
    return gates.cooldown_left_ms(counters, now_ms=now_ms, policy=draft.policy)


# ---------------------------------------------------------------- what is held back


def held_until(draft: Draft) -> datetime | None:
    """Return until when autonomous messages are held back, if they are."""
    if draft.moment.is_paused:
        return draft.moment.now + timedelta(seconds=PAUSE_AGAIN_S)
    return paused_until(draft) or draft.moment.quiet_until


def is_said_now(draft: Draft, *, is_asked: bool) -> bool:
    """Whether what was let through is said at once; unasked, it may be held back."""
    return is_asked or held_until(draft) is None


def paused_until(draft: Draft) -> datetime | None:
    """Return until when the person's own pause holds back what is said and done unasked."""
    until = draft.moment.paused_until
    return draft.moment.now + UNENDING_AGAIN if until == UNENDING else until


def is_paused(draft: Draft) -> bool:
    """Whether somebody paused what is done unasked: for everybody, or the person for themselves."""
    return draft.moment.is_paused or draft.moment.paused_until is not None


def holds_by(draft: Draft) -> str:
    """What holds autonomous messages back, in words."""
    if draft.moment.is_paused:
        return "a pause"
    is_quiet = draft.moment.paused_until is None
    return "quiet hours" if is_quiet else "the person's own pause, or one of this agent"


def hold(
    draft: Draft, timer_id: str, follow_up: FollowUp, until: datetime | None = None, why: str = ""
) -> None:
    """Put a due follow-up off: until quiet hours or the pause are over, or until `until`."""
    hours_at = draft.moment.hours_at if until is None else None
    until, why = until or held_until(draft), why or holds_by(draft)
    if until is None:
        raise AssertionError("nothing holds it back")
    draft.note("held", f"{why}: put off to {until:{INSTANT}}", timer_id)
    draft.open_follow_up(
        timer_id,
        replace(
            follow_up,
            generation=draft.ordinal,
            fire_at=until,
            held_from=follow_up.held_from or follow_up.fire_at,
        ),
        hours_at,
    )


def _hold_text(
    draft: Draft, text: str, sway: Sway, *, is_ordered: bool, channel: str | None
) -> None:
    loop = draft.state.loop
    is_outside = loop is not None and (
        loop.cause.type == "external" or (loop.timer_id or "").startswith(OUTSIDE)
    )
    timer_id = f"{OUTSIDE if is_outside else HELD}-{draft.state.effects + 1}"
    follow_up = FollowUp(
        generation=0,
        fire_at=draft.moment.now,
        reason="held back",
        message=text,
        keep=is_ordered,
        is_tainted=sway.is_outside,
        channel=channel,
    )
    hold(draft, timer_id, follow_up)


def hold_model(
    draft: Draft,
    timer_id: str,
    reason: str,
    until: datetime,
    sway: Sway,
    *,
    event_id: str,
    keep: bool = False,
) -> None:
    """Plan to ask the model when quiet hours or the pause are over: once, about all that came.

    Args:
        sway: of what came.
        keep: whether the person ordered it; then the plan is kept like a reminder.
    """
    planned = draft.state.follow_ups.get(timer_id)
    if planned is None:
        planned = FollowUp(
            generation=draft.ordinal,
            fire_at=until,
            reason=reason,
            held_from=draft.moment.now,
            keep=keep,
            is_tainted=sway.is_outside,
        )
        draft.open_follow_up(timer_id, planned, draft.moment.hours_at)
    else:
        changed = replace(
            planned,
            keep=planned.keep or keep,
            is_tainted=(sway | sways.of(planned)).is_outside,
        )
        draft.update(follow_ups={**draft.state.follow_ups, timer_id: changed})
    draft.note("held", f"{holds_by(draft)}: put off to {planned.fire_at:{INSTANT}}", event_id)


def bring_again(draft: Draft, follow_up: FollowUp) -> None:
    """Let a follow-up come once more, at once, whose name another one has by now."""
    again = replace(
        follow_up,
        generation=draft.ordinal,
        fire_at=draft.moment.now,
        held_from=follow_up.held_from or follow_up.fire_at,
    )
    draft.open_follow_up(f"{HELD}-{draft.state.effects + 1}", again)
