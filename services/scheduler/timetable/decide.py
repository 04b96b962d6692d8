"""What becomes of the instants of a row: run, or why not (LOOPS L-3, L-4, SPEC J-4). Pure.

A row's ledger tells up to which instant all is decided, and what runs. What came due since is
decided in order, by the row as it stood at each instant, and each decision is an entry of the
ledger. An entry that says ``running`` is the order to run; its end is another entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise, takewhile
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from vigil.contracts import (
    SlotEntry,
    TimetableRow,
)
from vigil.contracts.base import SET_BACK_MIN
from vigil.contracts.board import (
    AfterSchedule,
    Ledger,
    OpenRun,
    SlotState,
    kind_of,
)
from vigil.timetable import chain, reasons, schedule
from vigil.timetable.chain import RunEnd
from vigil.timetable.ledger import LOST_AFTER, ended, entry_of, is_busy, session_of
from vigil.timetable.schedule import Due, is_active
from vigil.zones.wall import END

LATE_AFTER: Final = timedelta(seconds=60)
"""A slot that isn't begun by then was missed: its row's policy decides."""


class Revised(NamedTuple):
    """A row as one revision has it, and until when it was so."""

    row: TimetableRow
    until: datetime | None = None
    """None: it is so now."""


class Decided(NamedTuple):
    """What becomes of one instant."""

    due_at: datetime
    state: SlotState
    reason: str = ""


# ---------------------------------------------------------------- what is due


def decisions(
    pieces: Sequence[Revised],
    ledger: Ledger,
    now: datetime,
    refusal: str = "",
    ends: Sequence[RunEnd] = (),
) -> list[SlotEntry]:
    """Return the entries to be made now, in the order of their instants; at most one is
    ``running``.

    Args:
        pieces: the revisions of one row, oldest first; the last one is the row as it is.
        refusal: why nothing of it may be run now, for instance a pause; empty: it may.
        ends: of runs that the row follows, the oldest first; those that are decided may be left
            out.

    Raises:
        InvalidInput: a schedule is none.
    """
    row = pieces[-1].row
    if row.runs_once and ledger.runs:
        return []
    made: list[SlotEntry] = []
    for before, after in pairwise(pieces):
        made += _left_by(before, after.row, _after(made, ledger), ends, now)
    if not row.is_removed and row.is_enabled:
        due = _due(row, _after(made, ledger), ends, now)
        if due.newest:
            made += _entries(row, due, _fates(row, due, ledger, now, refusal), now)
    return [chain.noted(one, ends) for one in made]


def _after(made: list[SlotEntry], ledger: Ledger) -> Ledger:
    return replace(ledger, through=made[-1].due_at) if made else ledger


def _due(row: TimetableRow, ledger: Ledger, ends: Sequence[RunEnd], until: datetime) -> Due:
    after = row.scheduled_at - timedelta(microseconds=1)
    if ledger.through is not None:
        after = max(after, ledger.through)
    if isinstance(row.schedule, AfterSchedule):
        return chain.due_of_ends(row, ends, after, until)
    return schedule.due_between(row, after, until, ledger)


def _left_by(
    before: Revised, after: TimetableRow, ledger: Ledger, ends: Sequence[RunEnd], now: datetime
) -> list[SlotEntry]:
    """Decide what a revision that holds no more left undecided; of the same schedule nothing is
    left: the next one has the same instants."""
    row, until = before
    if until is None or row.is_removed or _is_same_schedule(row, after):
        return []
    due = _due(row, ledger, ends, until)
    if not due.newest:
        return []
    state: SlotState = "missed" if row.is_enabled else "skipped"
    reason = _why_left(after) if row.is_enabled else reasons.PAUSED
    first, count = due.first or due.newest[0], due.earlier + len(due.newest)
    return [_range(row, first, due.newest[-1], count, now, state, reason)]


def _why_left(after: TimetableRow) -> str:
    if after.is_removed:
        return reasons.REMOVED
    return reasons.CHANGED if after.is_enabled else reasons.PAUSED_BEFORE


def _is_same_schedule(row: TimetableRow, after: TimetableRow) -> bool:
    return (
        row.is_enabled == after.is_enabled
        and row.is_removed == after.is_removed
        and row.schedule == after.schedule
        and row.scheduled_at == after.scheduled_at
    )


# ---------------------------------------------------------------- what becomes of it


def _fates(
    row: TimetableRow, due: Due, ledger: Ledger, now: datetime, refusal: str
) -> list[Decided]:
    """Decide about the instants that are known one by one, oldest first. What isn't in the answer
    is decided later."""
    # The hours are those of the instant: what was missed in them may be made up for after them.
    is_ready = takewhile(lambda at: at + schedule.jitter_of(row, at) <= now, due.newest)
    hourly = [(at, is_active(row.active_hours, row.zone, at)) for at in is_ready]
    outside = [Decided(at, "skipped", reasons.HOURS) for at, is_inside in hourly if not is_inside]
    inside = [at for at, is_inside in hourly if is_inside]
    busy = is_busy(row, ledger)
    if refusal:
        fates = [Decided(at, "skipped", refusal) for at in inside]
    elif not inside:
        fates = []
    elif row.misfire == "all":
        return _one_by_one(hourly, is_busy=busy)
    else:
        fates = _newest(row, inside, is_busy=busy, now=now)
    return sorted(outside + fates)


def _one_by_one(hourly: list[tuple[datetime, bool]], *, is_busy: bool) -> list[Decided]:
    """Run the oldest; what comes after it waits."""
    fates: list[Decided] = []
    for at, is_inside in hourly:
        if is_inside and is_busy:
            break
        fates.append(Decided(at, "running") if is_inside else Decided(at, "skipped", reasons.HOURS))
        if is_inside:
            break
    return fates


def _newest(
    row: TimetableRow, inside: list[datetime], *, is_busy: bool, now: datetime
) -> list[Decided]:
    """Run the newest, if it isn't too late; the others go with it."""
    *older, newest = inside
    late = now - newest - schedule.jitter_of(row, newest)
    if late > LATE_AFTER and row.misfire == "skip":
        return [Decided(at, "missed", reasons.POLICY) for at in inside]
    if late > max(schedule.grace_of(row, newest), LATE_AFTER):
        return [Decided(at, "missed", reasons.TOO_LATE) for at in inside]
    last = Decided(newest, "running")
    if is_busy:
        last = Decided(newest, "skipped", reasons.STILL_RUNNING)
    if row.misfire == "skip":
        early = [at for at in older if now - at > LATE_AFTER]
        fates = [Decided(at, "missed", reasons.POLICY) for at in early]
        older = older[len(early) :]
    else:
        fates = []
    fates += [Decided(at, "coalesced", reasons.FOLDED) for at in older]
    return [*fates, last]


# ---------------------------------------------------------------- entries


def _entries(row: TimetableRow, due: Due, fates: list[Decided], now: datetime) -> list[SlotEntry]:
    """Write fates down, those side by side that are the same as a range."""
    if not fates:
        return []
    made: list[SlotEntry] = []
    for (state, reason), group in groupby(fates, lambda one: (one.state, one.reason)):
        same = [one.due_at for one in group]
        made.append(_range(row, same[0], same[-1], len(same), now, state, reason))
    if due.first is None or due.last is None:
        return made
    state, reason = _before(made[0])
    return [_range(row, due.first, due.last, due.earlier, now, state, reason), *made]


def _before(first: SlotEntry) -> tuple[SlotState, str]:
    """Return what becomes of those that are too many to be looked at one by one."""
    if first.state in ("running", "skipped"):
        return "missed", reasons.TOO_MANY
    return first.state, first.reason


def _range(
    row: TimetableRow,
    first: datetime,
    last: datetime,
    count: int,
    now: datetime,
    state: SlotState,
    reason: str,
) -> SlotEntry:
    late = now - last - schedule.jitter_of(row, last)
    return SlotEntry(
        row=row.id,
        kind=kind_of(row.work),
        due_at=last,
        state=state,
        reason=reason,
        at=now,
        count=count,
        first_at=first if count > 1 else None,
        session=str(session_of(row, last)) if state == "running" else "",
        is_late=state == "running" and late > LATE_AFTER,
    )


def is_ahead(ledger: Ledger, now: datetime) -> bool:
    """Whether more is decided than can be: the clock was set back since."""
    return ledger.through is not None and ledger.through - now > SET_BACK_MIN


def set_back(
    row: TimetableRow, ledger: Ledger, newest: Sequence[SlotEntry], now: datetime
) -> SlotEntry:
    """Return the entry from which on a row goes by the clock as it is now.

    Args:
        newest: of its ledger, those about instants ahead.
    """
    ran = [one.due_at for one in newest if one.state == "running" and not one.is_by_hand]
    ran = [at for at in ran if at > now]
    return SlotEntry(
        row=row.id,
        kind=kind_of(row.work),
        due_at=now,
        state="skipped",
        reason=reasons.SET_BACK,
        at=now,
        count=0,
        set_back_from=ledger.through,
        ran_from=min(ran, default=None),
        ran_through=max(ran, default=None),
    )


def begun_again(
    row: TimetableRow, ledger: Ledger, now: datetime, refusal: str = ""
) -> list[SlotEntry]:
    """Return what becomes of runs that wait since no model answered: the entries to be made now.

    Args:
        refusal: as of `decisions`.
    """
    made: list[SlotEntry] = []
    for run in ledger.waiting:
        state, reason = _of_waiting(row, run, ledger, now, refusal)
        if not state:
            continue
        entry = replace(entry_of(row.id, run, state, now), reason=reason)
        if state == "running":
            late = now - run.due_at - schedule.jitter_of(row, run.due_at)
            session = session_of(row, run.due_at, tries=run.tries)
            entry = replace(entry, session=str(session), is_late=late > LATE_AFTER)
        made.append(entry)
    return made


def _of_waiting(
    row: TimetableRow, run: OpenRun, ledger: Ledger, now: datetime, refusal: str
) -> tuple[SlotState | Literal[""], str]:
    if row.is_removed:
        return "missed", reasons.REMOVED
    if not row.is_enabled:
        return "skipped", reasons.PAUSED
    if is_busy(row, ledger):
        return "coalesced", reasons.REPLACED
    if run.again_at is None or now < run.again_at:
        return "", ""
    is_over = run.again_until is None or now - run.again_until > LATE_AFTER
    if refusal or is_over:
        return ("skipped", refusal) if refusal else ("missed", reasons.TOO_LATE)
    return "running", ""


def lost(row: TimetableRow, ledger: Ledger, now: datetime) -> list[SlotEntry]:
    """Return the final entries of runs that gave no end in time."""
    waited = timedelta(seconds=row.work.timeout_s) + LOST_AFTER
    late = [one for one in ledger.running if now - one.at > waited]
    return [ended(row.id, one, now, problem=reasons.LOST) for one in late]


def overdue(row: TimetableRow, ledger: Ledger, now: datetime) -> list[OpenRun]:
    """Return the runs that have had their time: their sessions are told to end."""
    timeout = timedelta(seconds=row.work.timeout_s)
    return [one for one in ledger.running if now - one.at > timeout]


def next_at(
    row: TimetableRow, ledger: Ledger, now: datetime, ends: Sequence[RunEnd] = ()
) -> datetime | None:
    """Return when the row is to be looked at next; None: when something of it changes.

    Args:
        ends: as of `decisions`.

    Raises:
        InvalidInput: its schedule is none.
    """
    if row.is_removed or not row.is_enabled or (row.runs_once and ledger.runs):
        return None
    if isinstance(row.schedule, AfterSchedule):
        if row.misfire == "all" and is_busy(row, ledger):
            return None
        following = next(iter(_due(row, ledger, ends, END).newest), None)
    else:
        since = row.scheduled_at - timedelta(microseconds=1)
        after = since if ledger.through is None else max(since, ledger.through)
        following = next(schedule.upcoming(row, after, ledger), None)
    return None if following is None else following + schedule.jitter_of(row, following)
