"""What is known of calendars, for who looks: from the files that whoever keeps them writes.

A file is read again only when it's another. So a day of thousands is found in a millisecond or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from vigil.calendars import mirror
from vigil.calendars.agenda import AgendaEntry, CalendarAgenda, handle_of, order_of
from vigil.calendars.apart import invitation_apart
from vigil.calendars.edits import is_of
from vigil.calendars.entries import CalendarObject, CalendarWindow
from vigil.calendars.invitations import Proposal, proposal_of
from vigil.calendars.mirror import Mirror
from vigil.calendars.section import CalendarSection
from vigil.errors import InvalidInput
from vigil.subjects import Scope
from vigil.zones.database import zone_named


class KnownCalendar(NamedTuple):
    """A calendar, with what is known of it."""

    name: str
    section: CalendarSection
    mirror: Mirror | None
    """None: it was never seen."""
    agenda: CalendarAgenda

    def object_named(self, handle: str) -> CalendarObject | None:
        found = (one for one in self.agenda.objects if one.uid and handle_of(one.uid) == handle)
        return next(found, None)


class CalendarBook:
    """The calendars of a configuration, as they are known on this machine."""

    def __init__(
        self,
        calendars: Mapping[str, CalendarSection],
        home: Path,
    ) -> None:
        self._calendars = calendars
        self.home = home
        self.wake: Callable[[str], None] = lambda _name: None
        """Has whoever keeps a calendar look at it, if that is this replica."""
        self._read: dict[str, tuple[tuple[int, int, int], KnownCalendar]] = {}

    def of(self, whose: Scope) -> dict[str, CalendarSection]:
        """Return the calendars of an owner and agent, by name."""
        return {name: one for name, one in self._calendars.items() if one.scope == whose}

    def named(self, whose: Scope, name: str) -> CalendarSection:
        """Return one of them. Raises: InvalidInput, there is none of that name."""
        theirs = self.of(whose)
        if name not in theirs:
            there = ", ".join(map(repr, sorted(theirs))) or "none"
            raise InvalidInput("calendar", f"there is no {name[:40]!r}; there is: {there}")
        return theirs[name]

    async def agendas(self, whose: Scope) -> dict[str, CalendarAgenda]:
        """Return what is known of somebody's calendars, by name."""
        return {name: (await self.known(name)).agenda for name in sorted(self.of(whose))}

    async def known(self, name: str) -> KnownCalendar:
        """Return what is known of a calendar."""
        path = mirror.path_of(self.home, name, self._calendars[name])
        try:
            stat = path.stat()
            mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        except OSError:
            mark = (0, 0, 0)
        before = self._read.get(name)
        if before is not None and before[0] == mark:
            return before[1]
        found = await asyncio.to_thread(self._load, name, path)
        self._read[name] = mark, found
        return found

    def _load(self, name: str, path: Path) -> KnownCalendar:
        section = self._calendars[name]
        found = mirror.load(path, mirror.source_of(section))
        return KnownCalendar(
            name, section, found, CalendarAgenda(() if found is None else found.objects, name)
        )

    async def with_uid(self, whose: Scope, uid: str, *, but_of: str) -> str:
        """Return in which of somebody's calendars an event is; empty: in none.

        Args:
            but_of: the call whose own event is none of them.
        """
        for name in sorted(self.of(whose)):
            for one in (await self.known(name)).agenda.objects:
                if one.uid == uid and not is_of(one.data, but_of):
                    return name
        return ""

    async def between(
        self, names: list[str], since: datetime, until: datetime, zone: ZoneInfo
    ) -> list[AgendaEntry]:
        """Return what is due in some of them, in order; `zone` holds where they name none."""
        found: list[AgendaEntry] = []
        for name in names:
            known = await self.known(name)
            clocks = zone_of(known.section, zone)
            if not known.agenda.is_ordered(clocks):
                await asyncio.to_thread(known.agenda.order, clocks)
            found += known.agenda.between(since, until, clocks)
        if len(names) > 1:
            found.sort(key=order_of)
        return found


async def proposal_for(
    book: CalendarBook, whose: Scope, data: bytes, zone: ZoneInfo, now: datetime, *, sender: str
) -> Proposal:
    """Return what a ``text/calendar`` part of a mail would change of a person's calendars.

    Args:
        sender: the address that the mail is proven to be from; empty: it isn't.

    Raises:
        Unavailable: it can't be read now.
    """
    invitation = await invitation_apart(data, CalendarWindow.around(now))
    return proposal_of(invitation, await book.agendas(whose), zone, now, sender=sender)


def zone_of(section: CalendarSection, owners: ZoneInfo) -> ZoneInfo:
    """Return whose clocks hold for what floats in a calendar."""
    return zone_named(section.zone) if section.zone else owners
