"""What is told of a calendar each time that it was looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import structlog

from vigil.calendars import facts
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.section import CalendarSection
from vigil.contracts.board import SourceFacts
from vigil.errors import Unavailable
from vigil.subjects import SessionKey, token_of

log = structlog.get_logger("vigil.executor")

ZoneOf = Callable[[str, CalendarSection], ZoneInfo]
"""Whose clocks hold for a calendar, by its name."""
TakeFacts = Callable[
    [SessionKey, str, str, CalendarSection, Mapping[str, object]], Awaitable[SourceFacts]
]
"""(whose, cause, name, calendar, what it tells) -> what is known by it then."""
TOLD_AGAIN: Final = timedelta(minutes=30)
"""After which what hasn't changed is told again, so that its age says that it holds."""


class SeenCalendar(NamedTuple):
    """A calendar as it is known now."""

    name: str
    section: CalendarSection
    agenda: CalendarAgenda
    now: datetime
    is_fresh: bool
    """Whether it was just seen; else it's as it was last seen."""


class CalendarListener(Protocol):
    """Is told what is known of a calendar."""

    async def seen(self, known: SeenCalendar) -> float:
        """Take in how it is now; may be repeated.

        Returns:
            In how many seconds it's another by itself.
        """
        ...


class CalendarFacts:
    """Tells what is due today where situations look (FLOW F-10).

    Args:
        take: takes it to where it's kept. Raises: Unavailable.
    """

    def __init__(self, take: TakeFacts, zone_of: ZoneOf) -> None:
        self._take = take
        self._zone_of = zone_of
        self._told: dict[str, tuple[dict[str, object], datetime]] = {}

    async def seen(self, known: SeenCalendar) -> float:
        name, section, agenda, now, is_fresh = known
        if not is_fresh:
            return TOLD_AGAIN.total_seconds()  # the age of what was told says how old it is
        zone = self._zone_of(section.user, section)
        given = facts.values_of(agenda, zone, now)
        before = self._told.get(name)
        if before is None or before[0] != given or now - before[1] >= TOLD_AGAIN:
            key = SessionKey(section.user, section.agent, "calendar")
            cause = token_of("calendar seen", name, now.isoformat())
            try:
                await self._take(key, cause, name, section, given)
            except Unavailable as error:
                log.info("not told", action="calendar.facts", calendar=name, reason=str(error))
            else:
                self._told[name] = given, now
        return (facts.changes_at(agenda, zone, now) - now).total_seconds()
