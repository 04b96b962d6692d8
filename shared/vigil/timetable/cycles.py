"""What the runs of a row of the system come to, one after the other (SPEC C-7). Pure.

A run that failed leaves everything as it was: what was new is told to the next one, and of a cycle
what was to be looked at again is still to be.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from ..backoff import doubled
from ..contracts import SlotEntry
from ..contracts.board import CycleLedger, CycleReport, OpenRun, Recheck
from ..subjects import SessionKey

KIND: Final = "autonomy"
"""Of the sessions that run cycles."""
RECHECKS_MAX: Final = 20
CHECKED_MAX: Final = 100
LOOKED_MAX: Final = 100
FAILURES_MAX: Final = 3
"""Cycles that fail so often, one after the other, pause for a while (SPEC C-7)."""
PAUSE_MAX: Final = timedelta(hours=6)


def kind_of(entry: SlotEntry) -> str:
    """Return of what kind of row an entry is."""
    if entry.kind or not entry.session:
        return entry.kind or ("cron" if entry.ledger.cycles is None else KIND)
    return SessionKey.parse(entry.session).kind


def begun(cycles: CycleLedger, entry: SlotEntry) -> CycleLedger:
    """Return what stands once a run began, or wasn't needed: what is new is told."""
    return replace(cycles, told_seq=max(cycles.told_seq, entry.told_seq))


def ended(cycles: CycleLedger, run: OpenRun, entry: SlotEntry) -> CycleLedger:
    """Return what stands once a run ended."""
    if entry.state == "failed":
        return replace(cycles, told_seq=run.told_seq, failed_at=entry.at)
    looks = run.looks if kind_of(entry) == KIND else ()
    looked = {**cycles.looked, **dict.fromkeys(looks, run.due_at)}
    report = entry.report or CycleReport()
    named = () if report.is_tainted else report.checked  # other cycles are shown these names
    checked = {**cycles.checked, **dict.fromkeys(named, entry.at)}
    kept = [one for one in cycles.rechecks if one.at > run.at]
    # A report's mark is that of all in it, whatever its parts say.
    new = [replace(one, is_tainted=one.is_tainted or report.is_tainted) for one in report.rechecks]
    rechecks = sorted([*kept, *new], key=lambda one: one.at)[:RECHECKS_MAX]
    return CycleLedger(
        told_seq=cycles.told_seq,
        ended_at=entry.at,
        failed_at=cycles.failed_at,
        report=entry.report or cycles.report,
        checked=_newest(checked, CHECKED_MAX),
        rechecks=tuple(rechecks),
        looked=_newest(looked, LOOKED_MAX),
    )


def _newest(instants: dict[str, datetime], count: int) -> dict[str, datetime]:
    return dict(sorted(instants.items(), key=lambda one: (one[1], one[0]))[-count:])


def due_rechecks(cycles: CycleLedger, now: datetime) -> tuple[Recheck, ...]:
    """Return what is to be looked at again by now."""
    return tuple(one for one in cycles.rechecks if one.at <= now)


def paused_until(cycles: CycleLedger, failures: int, interval: timedelta) -> datetime | None:
    """Return until when no cycle begins, since too many failed; None: one may.

    After that one is tried, and if it fails, too, the pause is twice as long.

    >>> from datetime import UTC
    >>> failed = CycleLedger(failed_at=datetime(2026, 11, 20, tzinfo=UTC))
    >>> half_hour = timedelta(minutes=30)
    >>> paused_until(failed, 2, half_hour)
    >>> f"{paused_until(failed, 4, half_hour):%H:%M}"
    '02:00'
    """
    if failures < FAILURES_MAX or cycles.failed_at is None:
        return None
    return cycles.failed_at + doubled(interval, PAUSE_MAX, failures - FAILURES_MAX + 2)
