"""Whether a cycle of an agent begins, and what it is told (SPEC C-7, LOOPS L-3). Pure.

It begins if there is anything new that isn't of its own making, if something is to be looked at
again, or if it is time for what it keeps up with or its role (`vigil.watching.interests`); the
first one also if it has anything to look after. Else its slot is skipped with that reason, and no
model is asked. What it is told may be trusted: counts, `looks` as they are configured, and words of
cycles that took in nothing from outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import SlotEntry, TimetableRow
from vigil.contracts.board import CycleLedger, CycleReport, Ledger
from vigil.timetable.cycles import due_rechecks, paused_until
from vigil.timetable.schedule import is_active
from vigil.watching.interests import Interest

from .check_outcome import skipped
from .new_signals import NewSignals
from .system_rows import interval_of

NOTHING_NEW: Final = "nothing is new, and nothing is due to be looked at"
NOTHING_YET: Final = (
    "there is nothing to think about yet: its role is as it came, it has no looks, and nothing is "
    "known"
)
FAILING: Final = "its cycles failed, one after the other; one is tried at {at:%H:%M} UTC"
SHOWN_MAX: Final = 10
"""Names of what was checked that a cycle is told, the longest ago first."""
LATELY: Final = timedelta(hours=6)
"""What was checked since is nothing new to a cycle."""


def decided(
    row: TimetableRow,
    entry: SlotEntry,
    ledger: Ledger,
    signals: NewSignals,
    now: datetime,
    interests: Sequence[Interest] = (),
) -> SlotEntry:
    """Decide about a slot that would be run.

    Args:
        entry: says ``running``.
        interests: what a person gave the agent to look after.
    """
    cycles = ledger.cycles or CycleLedger()
    until = paused_until(cycles, ledger.failures, interval_of(row))
    if until is not None and now < until:
        return skipped(entry, FAILING.format(at=until))
    is_first = cycles.ended_at is None
    due_now = due(interests, cycles.looked, row.zone, entry.due_at)
    if not (signals.counts or due_rechecks(cycles, now) or due_now or (is_first and interests)):
        return skipped(entry, NOTHING_YET if is_first else NOTHING_NEW)
    words = described(cycles, signals, now, due_now)
    return replace(entry, change=words, told_seq=signals.through, looks=due_now)


def due(
    interests: Sequence[Interest], looked: Mapping[str, datetime], zone: str, at: datetime
) -> tuple[str, ...]:
    """Return what is to be looked at by the clock.

    Args:
        looked: when each was, last.
        zone: of the hours.
    """
    return tuple(
        interest.what
        for interest in interests
        if interest.every_s
        and is_active(interest.hours, zone, at)
        and (
            interest.what not in looked
            or looked[interest.what] + timedelta(seconds=interest.every_s) <= at
        )
    )


def described(
    cycles: CycleLedger, signals: NewSignals, now: datetime, due_now: Sequence[str] = ()
) -> str:
    """Return what a cycle begins with.

    Args:
        due_now: what is to be looked at because it is time.

    >>> from datetime import UTC
    >>> now = datetime(2026, 11, 20, 1, 30, tzinfo=UTC)
    >>> print(described(CycleLedger(), NewSignals(7, (("memory.saved (chat)", 2),)), now))
    This is your first cycle.
    <BLANKLINE>
    New, and not of your own making:
    - 2 memory.saved (chat)
    """
    parts = [
        _since(cycles),
        _list("New, and not of your own making:", _counted(signals)),
        _list("It is time to look at:", list(due_now)),
        _list("To look at again now:", _again(cycles, now)),
        _list("Not looked at lately, the longest ago first:", _left(cycles, now)),
        _last(cycles.report),
    ]
    return "\n\n".join(part for part in parts if part)


def _since(cycles: CycleLedger) -> str:
    if cycles.ended_at is None:
        return "This is your first cycle."
    return f"The cycle before ended at {cycles.ended_at:%Y-%m-%d %H:%M} UTC."


def _list(heading: str, points: list[str]) -> str:
    return "\n".join([heading, *(f"- {point}" for point in points)]) if points else ""


def _counted(signals: NewSignals) -> list[str]:
    return [f"{count} {name}" for name, count in signals.counts]


def _again(cycles: CycleLedger, now: datetime) -> list[str]:
    due = due_rechecks(cycles, now)
    points = [one.what for one in due if not one.is_tainted]
    hidden = len(due) - len(points)
    if hidden:
        points.append(
            f"{hidden} that content from outside had a part in: `list_memory` with source "
            "`cortex:autonomy` has them in the reports"
        )
    return points


def _left(cycles: CycleLedger, now: datetime) -> list[str]:
    old = sorted((at, what) for what, at in cycles.checked.items() if now - at > LATELY)
    return [f"{what} ({at:%Y-%m-%d %H:%M} UTC)" for at, what in old[:SHOWN_MAX]]


def _last(report: CycleReport | None) -> str:
    if report is None:
        return ""
    if report.is_tainted:
        return (
            "The report of the cycle before took in content from outside: `list_memory` with "
            "source `cortex:autonomy` shows it. Begin what you want to have looked up before you "
            "read it."
        )
    points = [f"found: {one}" for one in report.found]
    points += [f"put off: {one}" for one in report.deferred]
    return _list("From the report of the cycle before:", points)
