"""What the rehearsal model says of follow-ups that are open, and how it cancels them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from vigil.zones.database import zone_named

from ...model import Situation
from .reply import CALLS_MAX, LISTED_MAX, Reply

NOTHING_OPEN: Final = (
    "Nothing was open. What I had planned on my own ends as soon as you write; only reminders stay."
)
CANCELLING: Final = "Cancelling: "


def cancel(situation: Situation) -> Reply:
    """Cancel what is open, or say that nothing is; more than one answer takes goes on after it."""
    ids = _ordered(situation)[:CALLS_MAX]
    if not ids:
        return NOTHING_OPEN, []
    reasons = ", ".join(_label(situation, timer_id) for timer_id in ids)
    return CANCELLING + reasons, [("cancel_followup", {"timer_id": i}) for i in ids]


def _ordered(situation: Situation) -> list[str]:
    follow_ups = situation.follow_ups
    return sorted(follow_ups, key=lambda timer_id: (follow_ups[timer_id].fire_at, timer_id))


def _label(situation: Situation, timer_id: str) -> str:
    reason = " ".join(situation.follow_ups[timer_id].reason.split())
    return reason[:100] or timer_id


def pending(situation: Situation) -> str:
    """List what is open, in the order in which it is due."""
    ids = _ordered(situation)
    if not ids:
        return "Nothing is pending."
    zone = zone_named(situation.timezone)
    lines = [
        f"- {_label(situation, i)} ({i}): {_when(situation.follow_ups[i].fire_at, zone)}"
        for i in ids[:LISTED_MAX]
    ]
    if len(ids) > LISTED_MAX:
        lines.append(f"- and {len(ids) - LISTED_MAX} more")
    return "\n".join([f"Pending (times in {situation.timezone}):", *lines])


def _when(at: datetime, zone: ZoneInfo) -> str:
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
