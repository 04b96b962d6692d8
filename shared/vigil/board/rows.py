"""The way in for a row of the timetable that a person wants made or changed, whoever asks for it.

HTTP, the command line and a conversation come here: what a row may hold, name and follow is looked
at once, and nothing is stored that wasn't. The system's own rows follow from the configuration, and
are kept up elsewhere.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from ..bus.bus import Bus
from ..contracts import Change, TimetableRow
from ..settings.config import Config
from ..teams import holding
from ..timetable.check import check, check_known
from ..timetable.offers import check_skill, check_watch
from .kept import ROWS, KeptBoard
from .kind import Revision


class PersonsRows:
    """Rows as persons make and change them."""

    def __init__(self, bus: Bus, config: Config, skills: Path) -> None:
        """Args: skills: the folder of all."""
        self._bus = bus
        self._config = config
        self._skills = skills
        self._board = KeptBoard(bus, ROWS)

    async def make(
        self, row: TimetableRow, change: Change, now: datetime
    ) -> Revision[TimetableRow]:
        """Store a new row; one of the same id that is there is returned instead.

        Raises:
            BoundReached: the owner has as many as they may.
            InvalidInput: it can't be so.
            Unavailable: nobody can tell now, or it can't be stored.
        """
        await self._check(row, None)
        return await self._board.create(lambda _: row, holding(row.owner, row.agent), change, now)

    async def change(
        self, found: Revision[TimetableRow], row: TimetableRow, change: Change, now: datetime
    ) -> Revision[TimetableRow]:
        """Store what a row is now; `found` itself, if nothing of it is another.

        Raises:
            WrongLastSequence: there is a newer revision than `found`.
            BoundReached, InvalidInput, Unavailable: as `make`.
        """
        await self._check(row, found.entity)
        return found if row == found.entity else await self._board.change(found, row, change, now)

    async def _check(self, row: TimetableRow, before: TimetableRow | None) -> None:
        """Look at what is new of a row; if it fits among the owner's others, the store says."""
        if before is not None and _switched(before, row) == row:
            return  # whatever became of what it names: it can be paused, and ended
        check(row)
        check_known(row, before, self._config)
        await check_watch(self._bus, row, before)
        await check_skill(self._skills, row, before)


def _switched(before: TimetableRow, row: TimetableRow) -> TimetableRow:
    """Return a row as it was, but for whether it goes on."""
    return replace(
        before,
        is_enabled=row.is_enabled,
        is_removed=row.is_removed,
        scheduled_at=row.scheduled_at,
    )
