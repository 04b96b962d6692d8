"""Which ends of runs, or changes of facts, a row that follows others has yet to decide about
(`timetable.chain`), and what those ends came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from vigil.board.kept import KeptBoard, Revision
from vigil.bus.bus import Bus
from vigil.contracts import TellParent, TellParentPayload, TimetableRow, decode_turn
from vigil.contracts.board import AfterSchedule, Ledger, SourceFacts
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey
from vigil.timetable.chain import RunEnd, changed, in_order, is_end
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
        self._facts_read: dict[str, int] = {}
        """Of the facts of each source the same, on the board."""

    async def read(
        self,
        log: SlotLog,
        facts: KeptBoard[SourceFacts],
        whose: Scope,
        revisions: Sequence[Revision[TimetableRow]],
        ledger: Ledger,
    ) -> list[RunEnd]:
        """Return those that are undecided. Raises: Unavailable, InvalidInput; then nothing counts
        as read, for it's read again in this term."""
        found = [one for one in self.undecided if one.seq > _decided(ledger, one)]
        facts_read, ends_read = dict[str, int](), dict[str, int]()
        for source, since in _followed(revisions, is_fact=True).items():
            changes, facts_read[source] = await self._changes(facts, whose, source, since, ledger)
            found += changes
        for row, since in _followed(revisions, is_fact=False).items():
            newest = after = max(self._read.get(row, 0), ledger.followed)
            count = 0
            async for seq, entry in log.backwards(whose, row):
                count += 1
                if seq <= after or entry.at < since or count > READ_MAX:
                    break
                newest = max(newest, seq)
                if is_end(entry):
                    found.append(RunEnd(seq, entry.at, entry))
            ends_read[row] = newest
        self._facts_read |= facts_read
        self._read |= ends_read
        self.undecided = in_order(found, ledger.through)
        return self.undecided

    async def _changes(
        self,
        facts: KeptBoard[SourceFacts],
        whose: Scope,
        source: str,
        since: datetime,
        ledger: Ledger,
    ) -> tuple[list[RunEnd], int]:
        """Return changes of a source's facts that weren't read yet, and the place up to which they
        are now. Raises: Unavailable."""
        if ledger.followed_fact == 0 and ledger.through is not None:
            since = max(since, ledger.through)  # decided by an older version, by the ends of runs
        after = max(self._facts_read.get(source, 0), ledger.followed_fact)
        newest = await facts.find([whose], source)
        if newest is None or newest.number <= after:
            return [], after
        changes = [
            changed(source, one.number, one.at, one.entity.newest)
            for one in await facts.history(newest, after)
            if one.at >= since and one.entity.newest is not None and one.entity.newest.news
        ]
        return changes, newest.number


def _decided(ledger: Ledger, end: RunEnd) -> int:
    return ledger.followed_fact if end.is_fact else ledger.followed


def _followed(revisions: Iterable[Revision[TimetableRow]], *, is_fact: bool) -> dict[str, datetime]:
    """Return whose ends are followed, or whose facts, and since when."""
    found: dict[str, datetime] = {}
    for one in revisions:
        schedule, since = one.entity.schedule, one.entity.scheduled_at
        if isinstance(schedule, AfterSchedule) and is_fact == (schedule.on == "change"):
            found[schedule.row] = min(found.get(schedule.row, since), since)
    return found


async def report_at_end(bus: Bus, key: SessionKey) -> TellParentPayload | None:
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
