"""When a row of the timetable is due that follows events. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from ..contracts.board import EventSchedule
from .agenda import AgendaEntry, CalendarAgenda, handle_of

SPANS: Final = tuple(timedelta(days=days) for days in (2, 14, 90, 800))
"""How far ahead is looked, one after the other: a busy calendar's next event is near."""
LATE_MAX: Final = timedelta(hours=1)
SOON: Final = timedelta(seconds=1)
"""After which is due what has come so near that its time is over."""
APART: Final = timedelta(minutes=1)
"""Between two instants of a row: what is due sooner shares the later one. Whoever may invite the
person would else have a row run for each of a thousand events a second apart."""


def next_times(
    schedule: EventSchedule, agenda: CalendarAgenda, zone: ZoneInfo, now: datetime
) -> EventSchedule:
    """Return a schedule with when it is due next, as its events are now.

    What was to come and has been moved so near that its time is over is due at once. When nothing
    is ahead, it's due never; until an event is there again. It's due once in `APART` at most.

    Args:
        now: aware UTC; what was due until then is decided.
    """
    before, was = timedelta(seconds=schedule.before_s), schedule.at
    since, soonest = now, now + SOON
    if was is not None and was <= now:
        since, soonest = max(was, now - LATE_MAX), max(soonest, was + APART)
    for span in SPANS:
        found = None
        for entry in _ahead(schedule, agenda, zone, now, span):
            due, of = entry.begins_at - before, _name(entry)
            is_near = of == schedule.of and was is not None and was > now
            if (due > since or is_near) and (found is None or due < found[0]):
                found = due, of
        if found is not None:
            if was is not None and found[1] == schedule.of and found[0] <= was:
                # It may be as late as it is so as to be apart from the one before.
                soonest = was if timedelta(0) < was - now <= APART else soonest
            return replace(schedule, at=max(found[0], soonest), of=found[1])
    return replace(schedule, at=None, of="")


def _ahead(
    schedule: EventSchedule, agenda: CalendarAgenda, zone: ZoneInfo, now: datetime, span: timedelta
) -> Iterator[AgendaEntry]:
    until = now + span + timedelta(seconds=schedule.before_s)
    for entry in agenda.between(now - LATE_MAX, until, zone):
        if entry.is_cancelled or entry.begins_at + SOON <= now - LATE_MAX:
            continue
        if schedule.event:
            if handle_of(entry.of.uid) == schedule.event:
                yield entry
        elif not entry.is_all_day:
            yield entry


def _name(entry: AgendaEntry) -> str:
    return f"{handle_of(entry.of.uid)}/{entry.instance.recurrence}"
