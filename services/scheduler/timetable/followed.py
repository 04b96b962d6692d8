"""Which ends of runs a row that follows others has yet to decide about (`timetable.chain`), and
what those came to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from vigil.board.kept import Revision
from vigil.bus.bus import Bus
from vigil.contracts import TellParent, TellParentPayload, TimetableRow, decode_turn
from vigil.contracts.board import AfterSchedule, Ledger
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey
from vigil.timetable.chain import RunEnd, fits, in_order
from vigil.timetable.log import SlotLog

SYSTEM: Final = "SYSTEM"
TURNS_MAX: Final = 200
"""Turns of a session that are read."""
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


async def told_at_end(bus: Bus, key: SessionKey) -> TellParentPayload | None:
    """Return what a run told at its end; None: nothing that is kept. Raises: Unavailable."""
    seq = 0
    for _ in range(TURNS_MAX):
        message = await bus.get_next(SYSTEM, key.turns, seq + 1)
        if message is None:
            break
        seq = message.seq
        try:
            effects = decode_turn(message.data).effects
        except InvalidInput:
            continue
        for effect in effects:
            if isinstance(effect, TellParent) and effect.payload.slot is not None:
                return effect.payload
    return None
