"""What a calendar tells in a closed form, without a word of it (FLOW F-10, F-11). Pure.

How many events there are today, how many of them last all day, and when the next begins that
doesn't: that stands in each situation. Titles are whoever wrote them: who wants those calls
`calendar_list`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from ..contracts.board import AnInstant, BoundedNumber, FactShape
from ..facts.shown import NamedSource
from ..subjects import Scope, token_of
from .agenda import AgendaEntry, CalendarAgenda, day_of
from .section import CalendarSection

COUNT_MAX: Final = 99
"""More events of a day are told as so many."""
_COUNT: Final = BoundedNumber(least=0, most=COUNT_MAX)
TODAY, ALL_DAY, NEXT = "today", "all_day", "next"
SHAPES: Final[Mapping[str, FactShape]] = MappingProxyType(
    {TODAY: _COUNT, ALL_DAY: _COUNT, NEXT: AnInstant()}
)
NO_NEWS: Final[Mapping[str, str]] = MappingProxyType(dict.fromkeys(SHAPES, "never"))
"""That it's another day, or that an hour has come, is none."""
AHEAD: Final = timedelta(days=7)
"""How far ahead the next event is told."""


def source_id(name: str, section: CalendarSection) -> str:
    """Return by which id the facts of a calendar are kept."""
    return token_of("calendar", name, section.user, section.agent)


def sources_for(calendars: Mapping[str, CalendarSection], whose: Scope) -> tuple[NamedSource, ...]:
    """Return the calendars of an owner and agent, as sources of facts."""
    return tuple(
        NamedSource(f"calendar {name}", source_id(name, one), SHAPES)
        for name, one in calendars.items()
        if one.scope == whose
    )


def values_of(agenda: CalendarAgenda, zone: ZoneInfo, now: datetime) -> dict[str, object]:
    """Return what a calendar tells now.

    Args:
        zone: whose clocks say what today is.
    """
    since, until = day_of(now.astimezone(zone).date(), zone)
    today = [one for one in agenda.between(since, until, zone) if counts(one)]
    values: dict[str, object] = {
        TODAY: min(len(today), COUNT_MAX),
        ALL_DAY: min(sum(one.is_all_day for one in today), COUNT_MAX),
    }
    following = following_of(agenda, zone, now)
    if following is not None:
        values[NEXT] = following.isoformat()
    return values


def counts(entry: AgendaEntry) -> bool:
    """Whether an entry is due: it isn't cancelled."""
    return not entry.is_cancelled


def following_of(agenda: CalendarAgenda, zone: ZoneInfo, now: datetime) -> datetime | None:
    """Return when the next event begins that isn't one of whole days; None: not within a week."""
    ahead = (
        one.begins_at
        for one in agenda.between(now, now + AHEAD, zone)
        if counts(one) and not one.is_all_day and one.begins_at >= now
    )
    return min(ahead, default=None)


def changes_at(agenda: CalendarAgenda, zone: ZoneInfo, now: datetime) -> datetime:
    """Return when what is told becomes another by itself: an event begins, or the day ends."""
    _, until = day_of(now.astimezone(zone).date(), zone)
    following = following_of(agenda, zone, now)
    return until if following is None else min(following + timedelta(seconds=1), until)
