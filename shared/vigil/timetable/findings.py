"""What is wrong with a row of the timetable, by its ledger alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from ..contracts import SlotEntry, TimetableRow
from ..contracts.board import AfterSchedule, Ledger, is_asked_first
from ..words.amounts import count_of, number_of
from .ledger import LOST_AFTER
from .reasons import AWAY
from .schedule import jitter_of, upcoming

What = Literal[
    "undecided", "no_end", "failing", "never_ran", "missed", "late", "cut_off", "untold", "clock"
]
SINCE: Final = timedelta(days=7)
UNDECIDED_AFTER: Final = timedelta(minutes=2)
"""A scheduler decides within a second, and another takes over within some."""
UNDECIDED_WATCH_AFTER: Final = timedelta(minutes=65)
"""Slots of a watcher that saw nothing are stored together, once an hour."""
FAILURES_MIN: Final = 2


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong."""

    what: What
    text: str


def findings(
    row: TimetableRow,
    ledger: Ledger,
    entries: Sequence[SlotEntry],
    now: datetime,
    others: Iterable[TimetableRow] = (),
) -> list[Finding]:
    """Return what is wrong with a row that is on; nothing is with one that is paused or removed.

    Args:
        entries: its newest, the newest first.
        others: the owner's rows.

    Raises:
        InvalidInput: its schedule is none.
    """
    if row.is_removed or not row.is_enabled:
        return []
    newest = [one for one in entries if one.at >= now - SINCE and not one.is_by_hand]
    recent = [one for one in newest if one.set_back_from is None]
    return [
        *_undecided(row, ledger, now),
        *_without_end(row, ledger, now),
        *_failing(ledger, entries),
        *_never_ran(row, ledger, recent),
        *_missed(row, recent),
        *_cut_off(row, others),
        *_set_back(newest),
    ]


def _undecided(row: TimetableRow, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    if (row.runs_once and ledger.runs) or (row.misfire == "all" and ledger.running):
        return
    after = row.scheduled_at - timedelta(microseconds=1)
    if ledger.through is not None:
        after = max(after, ledger.through)
    due_at = next(upcoming(row, after, ledger), None)
    wait = UNDECIDED_WATCH_AFTER if is_asked_first(row.work) else UNDECIDED_AFTER
    if due_at is not None and due_at + jitter_of(row, due_at) + wait < now:
        text = f"nobody decided about what was due at {_at(due_at)}: is a scheduler active?"
        yield Finding("undecided", text)


def _without_end(row: TimetableRow, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    patience = timedelta(seconds=row.work.timeout_s) + LOST_AFTER + UNDECIDED_AFTER
    for run in ledger.running:
        if now - run.at > patience:
            yield Finding("no_end", f"{run.session} was begun at {_at(run.at)} and has no end")


def _failing(ledger: Ledger, entries: Sequence[SlotEntry]) -> Iterator[Finding]:
    if ledger.failures >= FAILURES_MIN:
        last = next((one.reason for one in entries if one.state == "failed"), "")
        why, times = f": {last}" if last else "", count_of(ledger.failures, "time")
        yield Finding("failing", f"it failed {times}, one after the other{why}")


def _never_ran(row: TimetableRow, ledger: Ledger, recent: Sequence[SlotEntry]) -> Iterator[Finding]:
    if ledger.runs or not recent or is_asked_first(row.work):
        return
    count = sum(one.count for one in recent)
    yield Finding(
        "never_ran", f"it was due {count_of(count, 'time')}, and never ran: {recent[0].reason}"
    )


def _missed(row: TimetableRow, recent: Sequence[SlotEntry]) -> Iterator[Finding]:
    # What the system keeps up it does as soon as it's back: nobody waited for it.
    away = [one for one in recent if one.reason in AWAY and not row.is_of_system]
    if away:
        first, last = away[-1].first_at or away[-1].due_at, away[0].due_at
        span = f"between {_at(first)} and {_at(last)}" if first != last else f"at {_at(first)}"
        count = sum(one.count for one in away)
        missed = f"{count_of(count, 'time')} {number_of(count, 'was', 'were')} missed"
        text = f"{missed} while off or asleep, {span}"
        yield Finding("missed", text)
    late = sum(one.state == "late" for one in recent)
    if late:
        yield Finding("late", f"{late} of its runs of the last 7 days began late")


def _set_back(newest: Iterable[SlotEntry]) -> Iterator[Finding]:
    for one in newest:
        if one.set_back_from is not None:
            ahead, at = _at(one.set_back_from), _at(one.at)
            yield Finding("clock", f"the machine's clock was set back to {at} from after {ahead}")
            return


def _cut_off(row: TimetableRow, others: Iterable[TimetableRow]) -> Iterator[Finding]:
    if not isinstance(row.schedule, AfterSchedule) or row.schedule.hook:
        return
    id_ = row.schedule.row
    above = next((one for one in others if one.id == id_ and not one.is_removed), None)
    if above is None:
        yield Finding("cut_off", "the row that it follows was removed: it will never run")
    elif not above.is_enabled:
        yield Finding("cut_off", f"it follows {above.name!r}, which is paused")


def untold(entry: SlotEntry, arrival: str) -> Finding:
    """Return what is wrong with a result that nobody was told.

    Args:
        arrival: what became of it, in a word.
    """
    return Finding("untold", f"what its run of {_at(entry.due_at)} said was not told: {arrival}")


def _at(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
