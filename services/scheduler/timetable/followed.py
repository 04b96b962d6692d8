"""Which ends of runs a row that follows others has yet to decide about: `timetable.chain`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from vigil.board.kept import Revision
from vigil.contracts import TimetableRow
from vigil.contracts.board import AfterSchedule, Ledger
from vigil.subjects import Scope
from vigil.timetable.chain import RunEnd, fits, in_order
from vigil.timetable.log import SlotLog

READ_MAX: Final = 1_000
"""Entries of one ledger that are read back at a time: what ended before, while nobody decided, is
left out."""


class FollowedEnds:
    """Those of one row, for one term. What was read once isn't read again."""

    def __init__(self) -> None:
        self.undecided: list[RunEnd] = []
        """The oldest first."""
        self._read: dict[str, int] = {}
        """Of each ledger the place up to which it was read."""

    async def read(
        self,
        log: SlotLog,
        whose: Scope,
        revisions: Iterable[Revision[TimetableRow]],
        ledger: Ledger,
    ) -> list[RunEnd]:
        """Return those that are undecided. Raises: Unavailable, InvalidInput."""
        found = [one for one in self.undecided if one.seq > ledger.followed]
        for row, since in _followed(revisions).items():
            newest = after = max(self._read.get(row, 0), ledger.followed)
            count = 0
            async for seq, entry in log.backwards(whose, row):
                count += 1
                if seq <= after or entry.at < since or count > READ_MAX:
                    break
                newest = max(newest, seq)
                if fits("any", entry):
                    found.append(RunEnd(seq, entry.at, entry))
            self._read[row] = newest
        self.undecided = in_order(found, ledger.through)
        return self.undecided


def _followed(revisions: Iterable[Revision[TimetableRow]]) -> dict[str, datetime]:
    """Return which rows are followed, and since when."""
    found: dict[str, datetime] = {}
    for one in revisions:
        schedule, since = one.entity.schedule, one.entity.scheduled_at
        if isinstance(schedule, AfterSchedule):
            found[schedule.row] = min(found.get(schedule.row, since), since)
    return found
