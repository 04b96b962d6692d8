"""Rows of the timetable that follow events: each is moved as its event is, and ends with it.

The scheduler goes by what stands in the row, and knows no calendar. So a row is moved on only once
its instant was decided there, which its ledger says: none is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from vigil.board.entries import STREAM
from vigil.board.kept import ROWS, KeptBoard, Revision
from vigil.bus.bus import Bus
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.row_times import LATE_MAX, next_times
from vigil.calendars.section import CalendarSection
from vigil.contracts import Change, TimetableRow
from vigil.contracts.board import EventSchedule
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.subjects import ANYBODY, Scope, board_of
from vigil.timetable.log import SlotLog

from .listeners import SeenCalendar, ZoneOf

log = structlog.get_logger("vigil.executor")

OURS: Final = "calendar:"
AGAIN_S: Final = 5.0
"""How soon it's looked again whether an instant was decided."""
LATEST: Final = timedelta(hours=1)
MOVED: Final = "its event was moved, or another is next"
OVER: Final = "its event is over, or was cancelled"


class EventRows:
    """Moves them."""

    def __init__(self, bus: Bus, zone_of: ZoneOf) -> None:
        self._bus = bus
        self._zone_of = zone_of
        self.wake: Callable[[str], None] = lambda _name: None
        """Has whoever keeps a calendar tell how it is, if that is this replica."""
        self._board = KeptBoard(bus, ROWS)
        self._rows: dict[tuple[Scope, str], Revision[TimetableRow]] = {}

    async def run(self) -> None:
        """Know which rows there are, until cancelled. Raises: Unavailable, BusError."""
        follower = await self._bus.follow(STREAM, [board_of(ANYBODY, ROWS.name)], 0)
        try:
            async for message in follower:
                found = self._board.read(message)
                if found is not None:
                    self._take(found)
        finally:
            await follower.close()

    def _take(self, found: Revision[TimetableRow]) -> None:
        row = found.entity
        where = Scope(row.agent, row.owner), row.id
        is_followed = isinstance(row.schedule, EventSchedule) and row.is_enabled
        if not is_followed or row.is_removed:
            self._rows.pop(where, None)
            return
        self._rows[where] = found
        if isinstance(row.schedule, EventSchedule) and not found.change.by.startswith(OURS):
            self.wake(row.schedule.calendar)

    async def seen(self, known: SeenCalendar) -> float:
        """Move the rows that follow a calendar, as it is known: also while it can't be seen."""
        name, section, agenda, now, _ = known
        wait_s = LATEST.total_seconds()
        for (whose, _), found in list(self._rows.items()):
            schedule = found.entity.schedule
            if not isinstance(schedule, EventSchedule) or schedule.calendar != name:
                continue
            if whose != section.scope:
                continue
            try:
                wait_s = min(wait_s, await self._move(name, section, found, schedule, agenda, now))
            except (Unavailable, WrongLastSequence, InvalidInput) as error:
                about = {"row": found.entity.id, "calendar": name, "error": str(error)}
                log.info("not moved", action="calendar.row", **about)
                wait_s = min(wait_s, AGAIN_S)
        return wait_s

    async def _move(
        self,
        name: str,
        section: CalendarSection,
        found: Revision[TimetableRow],
        schedule: EventSchedule,
        agenda: CalendarAgenda,
        now: datetime,
    ) -> float:
        """Return in how many seconds to look at it again."""
        row = found.entity
        if not await self._is_decided(row, schedule, now):
            return AGAIN_S
        after = next_times(schedule, agenda, self._zone_of(section.user, section), now)
        if after != schedule:
            moved = replace(row, schedule=after, scheduled_at=now)
            why = OVER if after.at is None else MOVED
            change = Change(by=f"{OURS}{name}", why=why)
            await self._board.change(found, moved, change, now)
            log.info("row moved", action="calendar.row", row=row.id, calendar=name, reason=why)
        if after.at is None:
            return LATEST.total_seconds()
        return max((after.at - now).total_seconds() + 1.0, 1.0)

    async def _is_decided(self, row: TimetableRow, schedule: EventSchedule, now: datetime) -> bool:
        """Whether the instant that a row has is to come, or was decided. Raises: Unavailable."""
        if schedule.at is None or schedule.at > now or schedule.at + LATE_MAX < now:
            return True
        ledger = (await SlotLog(self._bus).last(Scope(row.agent, row.owner), row.id)).ledger
        return ledger.through is not None and ledger.through >= schedule.at
