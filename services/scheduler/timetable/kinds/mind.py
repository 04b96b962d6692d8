"""Looks of minds at the goals that are due; when, is computed from them: nothing is polled (SPEC
G-1).

The rows are kept by `services.scheduler.minds`, as goals change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil.backoff import doubled
from vigil.board.asked import read_goals
from vigil.contracts import SlotEntry
from vigil.contracts.board import BoardGoal, MindWork
from vigil.goals import lifecycle, pace

from ..check_outcome import CheckOutcome, skipped
from ..known import KnownRow
from ..row_kind import CheckContext, RowKind

NOTHING_DUE: Final = "no goal is due"
WAIT_MAX: Final = timedelta(hours=6)
"""After looks that failed, one after the other."""


class DueGoals(NamedTuple):
    """The goals that a look has something to do with, by their ids."""

    ids: tuple[str, ...]


def due_of(goals: Iterable[BoardGoal], since: datetime | None, now: datetime) -> DueGoals:
    """Return what a look is at: goals that are due, and those that weren't reached in time."""
    there = list(goals)
    missed = [one for one in there if lifecycle.is_missed(one, since)]
    return DueGoals(tuple(one.id for one in (*pace.taken(lifecycle.due(there, now)), *missed)))


def decided(entry: SlotEntry, due: DueGoals) -> SlotEntry:
    """Decide about a slot that would be run: nothing is due, so nobody is asked."""
    if due.ids:
        return replace(entry, looks=due.ids)
    return skipped(entry, NOTHING_DUE)


def next_look_at(
    goals: Iterable[BoardGoal],
    last_at: datetime | None,
    failures: int,
    tick: timedelta,
    now: datetime,
    looks: Mapping[str, Sequence[datetime]],
) -> datetime | None:
    """Return when the next look is to be; None: no goal is pursued.

    What is still due after a look waits: of a failed one the longer, the oftener, and a goal the
    longer, the more looks left it so (`vigil.goals.pace`).

    Args:
        last_at: when the last look ended, or was skipped; None: there was none.
        failures: looks that failed since the last good one.
        looks: when looks at each goal began, the oldest first, by its id.
    """
    there = list(goals)
    begin = (pace.begins_at(one, looks.get(one.id, ()), last_at, tick, now) for one in there)
    found = [at for at in begin if at is not None]
    found += [one.moved_at for one in there if lifecycle.is_missed(one, last_at)]
    if not found:
        return None
    soonest = min(found)
    if last_at is None:
        return soonest
    return max(soonest, min(last_at, now) + doubled(tick, max(WAIT_MAX, tick), failures + 1))


async def _check(
    context: CheckContext, known: KnownRow, _begun: SlotEntry, now: datetime
) -> DueGoals:
    there = await read_goals(context.bus, known.scope)
    return due_of([one.goal for one in there], known.ledger.through, now)


def _decide(known: KnownRow, begun: SlotEntry, seen: object, _now: datetime) -> CheckOutcome | None:
    return CheckOutcome(decided(begun, seen)) if isinstance(seen, DueGoals) else None


KIND: Final = RowKind(work=MindWork, start=None, check=_check, decide=_decide)
