"""Changes of one instance of a series and of all later ones (``RANGE=THISANDFUTURE``). Pure.

Some programs write them, Evolution for one. Such a change is named by the first instance that it is
about, and moves all by as much as that (RFC 5545, 3.8.4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any, Final

import icalendar
import recurring_ical_events

ONWARDS: Final = "THISANDFUTURE"
CHANGED_MAX: Final = 5_000
"""How many instances in a row may have changes of their own, as of a series that is read."""


def is_onwards(event: Any) -> bool:
    """Whether an event of a series changes all later instances, too."""
    named = event.get("RECURRENCE-ID")
    return named is not None and str(named.params.get("RANGE", "")).upper() == ONWARDS


def instance_of(begins: date, change: Any) -> date:
    """Return when an instance begins by its series' rule, of one that begins by such a change."""
    if begins == change["DTSTART"].dt:
        first: date = change["RECURRENCE-ID"].dt
        return first
    return begins - _moved(change)


def described_by(events: Iterable[Any], master: Any, instance: date) -> tuple[Any, date]:
    """Return what an instance without a description of its own is like, and when it begins.

    Args:
        instance: when it begins by the rule.
    """
    at = comparable(instance)
    earlier = [one for one in events if is_onwards(one) and _named(one) <= at]
    if not earlier:
        return master, instance
    change = max(earlier, key=_named)
    return change, instance + _moved(change)


def put_off(whole: icalendar.Calendar, events: Sequence[Any], master: Any, change: Any) -> None:
    """Have such a change begin an instance later: what is to become of its first is that one's."""
    later = _next(whole, events, master, change)
    if later is None:
        whole.subcomponents.remove(change)
        return
    begins = later + _moved(change)
    if "DTEND" in change:
        ends = begins + (change["DTEND"].dt - change["DTSTART"].dt)
        change.pop("DTEND")
        change.add("dtend", ends)
    for name, at in (("dtstart", begins), ("recurrence-id", later)):
        change.pop(name)
        change.add(name, at)
    change["RECURRENCE-ID"].params["RANGE"] = ONWARDS


def _next(
    whole: icalendar.Calendar, events: Sequence[Any], master: Any, change: Any
) -> date | None:
    """Return the first instance behind a change's that has no description of its own."""
    taken = {_named(one) for one in events if "RECURRENCE-ID" in one}
    rule = icalendar.Calendar()
    for one in (*whole.walk("VTIMEZONE"), master):
        rule.add_component(one)
    query = recurring_ical_events.of(rule)
    behind: Iterator[Any] = query.after(change["RECURRENCE-ID"].dt)
    for one in islice(behind, CHANGED_MAX):
        begins: date = one["DTSTART"].dt
        if comparable(begins) > _named(change) and comparable(begins) not in taken:
            return begins
    return None


def _moved(change: Any) -> timedelta:
    begins, named = change["DTSTART"].dt, change["RECURRENCE-ID"].dt
    if isinstance(begins, datetime) == isinstance(named, datetime):
        moved: timedelta = begins - named
        return moved
    return comparable(begins) - comparable(named)


def _named(change: Any) -> datetime:
    return comparable(change["RECURRENCE-ID"].dt)


def comparable(at: date) -> datetime:
    """Return a day, or a time without a zone, as if it were in UTC."""
    if isinstance(at, datetime):
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return datetime(at.year, at.month, at.day, tzinfo=UTC)
