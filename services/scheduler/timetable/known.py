"""A row of the timetable as the scheduler knows it for one term."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.board.kept import Revision
from vigil.contracts import SlotEntry, TimetableRow
from vigil.contracts.base import SET_BACK_MIN
from vigil.contracts.board import BulletinWork, CycleLedger, LastSeen, Ledger, OpenRun
from vigil.subjects import Scope
from vigil.timetable.edit import moved
from vigil.timetable.ledger import FAILURES_MAX, LOST_AFTER
from vigil.timetable.log import Placed

from .decide import Revised, lost, next_at, overdue
from .followed import FollowedEnds

WHY_PAUSED: Final = f"{FAILURES_MAX} runs failed, one after the other"


class KnownRow:
    """A row as its revisions have it, and its ledger."""

    def __init__(self) -> None:
        self.revisions: list[Revision[TimetableRow]] = []
        """The oldest first; none: only its ledger is known."""
        self.last = Placed()
        self.quiet: SlotEntry | None = None
        """Of a watcher: slots that are decided, and not yet stored."""
        self.seen: LastSeen | None = None
        """What it saw last; None: what the ledger has."""
        self.answer: object = None
        """What came of its check, if nothing is decided by it yet."""
        self.checked_from = 0
        """`told_seq` as that check began: what a run was told meanwhile is not new any more."""
        self.checked_seq = 0
        """Of SIGNALS, or what else it checks: up to there nothing is new for it, beside what the
        ledger knows of."""
        self.is_checking = False
        self.followed = FollowedEnds()
        """Of a row that follows others."""
        self.prepared: dict[str, object] = {}
        """What was read for runs that haven't begun, by session; None: it's being read."""
        self.begun: set[str] = set()
        """Sessions of open runs whose first event is stored."""
        self.told_to_end: set[str] = set()
        """Sessions of open runs that were told to end."""
        self.overdue_since: dict[str, datetime] = {}
        """Since when open runs are known to have had their time, by session; of one that was told
        to end, since then, whichever scheduler told it."""

    def place(self, last: Placed) -> None:
        """Know the newest entry of the ledger; what was done for runs that are over is forgotten,
        or a term of months would remember each."""
        self.last = last
        open_ = {run.session for run in last.ledger.running}
        self.begun &= open_
        self.prepared = {one: read for one, read in self.prepared.items() if one in open_}
        self.told_to_end &= open_
        self.overdue_since = {one: at for one, at in self.overdue_since.items() if one in open_}

    def note_told(self, run: OpenRun, at: datetime) -> None:
        """Know when a run was told to end."""
        self.told_to_end.add(run.session)
        self.overdue_since[run.session] = min(at, self.overdue_since.get(run.session, at))

    @property
    def ledger(self) -> Ledger:
        """What is decided, stored or not."""
        ledger = self.last.ledger
        if self.quiet is not None and (ledger.through or self.quiet.due_at) <= self.quiet.due_at:
            ledger = replace(ledger, through=self.quiet.due_at)
        return replace(ledger, seen=self.seen or ledger.seen)

    @property
    def told_seq(self) -> int:
        """Of SIGNALS, or what else it checks: up to there its runs were told."""
        return (self.ledger.cycles or CycleLedger()).told_seq

    @property
    def read_seq(self) -> int:
        """Likewise: nothing up to there is new to it."""
        return max(self.told_seq, self.checked_seq)

    def take_answer(self) -> object:
        """Return what came of its check, once; None: there is nothing, or a run that ended since
        was told of what it saw."""
        answer, self.answer = self.answer, None
        return answer if self.checked_from >= self.told_seq else None

    @property
    def row(self) -> TimetableRow:
        return self.revisions[-1].entity

    @property
    def scope(self) -> Scope:
        return Scope(self.row.agent, self.row.owner)

    @property
    def fails_always(self) -> bool:
        """Whether it is to be paused; one that was resumed has as many runs again."""
        ledger, row = self.last.ledger, self.row
        is_over = ledger.failures > 0 and ledger.failures % FAILURES_MAX == 0
        is_since = ledger.through is not None and ledger.through >= row.scheduled_at
        may = row.is_enabled and not row.is_removed and not row.is_of_system  # those wait anyway
        return is_over and is_since and may

    def next_at(self, now: datetime) -> datetime | None:
        """Return when it is to be visited next; None: when it changes."""
        timeout = timedelta(seconds=self.row.work.timeout_s)
        waits = (timeout, timeout + LOST_AFTER)
        ends = [run.at + wait for run in self.last.ledger.running for wait in waits]
        found = [at for at in ends if at >= now]
        found += [at + LOST_AFTER for at in self.overdue_since.values()]
        found = [at + timedelta(milliseconds=1) for at in found]
        found += [run.again_at for run in self.last.ledger.waiting if run.again_at is not None]
        due_at = next_at(self.row, self.ledger, now, self.followed.undecided)
        return min([*found, *([] if due_at is None else [due_at])], default=None)

    def lost(self, now: datetime, *, is_alone: bool) -> list[SlotEntry]:
        """Return the final entries of runs that gave no end in time.

        Args:
            is_alone: each run is a session of its own, and can be told to end. It was told so when
                it was first seen to have had its time: after a night in which the machine slept or
                nothing ran, it has as long as ever to tell of its end.
        """
        for run in overdue(self.row, self.last.ledger, now):
            self.overdue_since.setdefault(run.session, now)
        found = lost(self.row, self.last.ledger, now)
        since = self.overdue_since
        return [one for one in found if not is_alone or now - since[one.session] >= LOST_AFTER]

    def has_moved(self, zone: str) -> bool:
        """Whether it goes by its owner's zone, and that is another now."""
        return self.row.has_owners_zone and self.row.zone != zone and not self.row.is_removed

    def wanted(self, zone: str, now: datetime) -> tuple[TimetableRow, str]:
        """Return the row as it is to be, and why.

        Args:
            zone: its owner's.
        """
        if self.fails_always:
            return replace(self.row, is_enabled=False), WHY_PAUSED
        if self.row.scheduled_at - now > SET_BACK_MIN and not self.row.is_of_system:
            return replace(self.row, scheduled_at=now), "the clock was ahead when it was set"
        if self.has_moved(zone):
            return moved(self.row, zone, now), f"the time zone of its owner is {zone} now"
        return self.row, ""

    @property
    def lacks_bulletin(self) -> bool:
        """Whether it is a bulletin's, of which none was written yet."""
        is_on = self.row.is_enabled and not self.row.is_removed
        return isinstance(self.row.work, BulletinWork) and is_on and self.ledger.through is None

    def pieces(self) -> list[Revised]:
        """Return the revisions that something may be undecided of."""
        ends = [one.at for one in self.revisions[1:]]
        found = [
            Revised(one.entity, until)
            for one, until in zip(self.revisions, [*ends, None], strict=True)
        ]
        through = self.last.ledger.through
        self.revisions = [
            one
            for one, piece in zip(self.revisions, found, strict=True)
            if piece.until is None or through is None or piece.until > through
        ]
        return found[-len(self.revisions) :]
