"""Maintenance: summaries that memory merged since the last time are written anew (SPEC M-6).

Memory merges without a model, and puts notes one below the other. Whether it did is told by its
signals, so a quiet hour costs one look at their stream. A session gets a few summaries, either
those that may be trusted or those that content from outside had a part in, never both. After three
sessions that failed, one after the other, it waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil.bus.bus import Bus
from vigil.contracts import Memory, SlotEntry, Start, TimetableRow
from vigil.contracts.board import (
    SUMMARIES_MAX,
    CycleLedger,
    EverySchedule,
    MaintenanceWork,
    MergedSummary,
    OpenRun,
)
from vigil.memory.client import MemoryClient
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.questions import LIMIT_MAX
from vigil.memory.summaries import is_unwritten
from vigil.settings.config import Config
from vigil.subjects import Scope
from vigil.timetable.cycles import paused_until

from .. import new_signals, system_rows
from ..check_outcome import CheckOutcome, skipped
from ..known import KnownRow
from ..new_signals import NewSignals
from ..row_kind import CheckContext, RowKind

FIRST_AFTER: Final = timedelta(minutes=10)
KINDS: Final = ("memory.merged",)
PAGES_MAX: Final = 10
"""Of summaries, the newest first, that a look goes through: 2,000."""
BYTES_MAX: Final = 48 * 1024
"""Of the texts of a session: they stand in each of its turns."""
PROMPT: Final = "Write anew what memory merged: {count} of its summaries."
NOTHING_MERGED: Final = "memory merged nothing that is to be written anew"
OFF: Final = "what memory merged isn't written anew, as configured"
FAILING: Final = "its texts failed, one after the other; one is tried at {at:%H:%M} UTC"


class Unwritten(NamedTuple):
    """Summaries for one session: all may be trusted, or none."""

    summaries: tuple[MergedSummary, ...] = ()
    is_tainted: bool = False


class MergedCheck(NamedTuple):
    """What a look came to."""

    signals: NewSignals
    unwritten: Unwritten = Unwritten()
    has_model: bool = True
    """Whether a model may be asked, as configured."""


def row_of(config: Config, whose: Scope, zone: str, now: datetime) -> TimetableRow:
    """Return the row by which a person's summaries are written anew."""
    interval_s = config.cortex.summary_interval_secs
    return system_rows.made(
        whose,
        MaintenanceWork(),
        EverySchedule(interval_s=interval_s),
        zone=zone,
        is_enabled=True,
        first_at=now + FIRST_AFTER,
        now=now,
        grace_s=interval_s,  # whatever was missed, it's looked
    )


def chosen(memories: Iterable[Memory]) -> Unwritten:
    """Return which summaries a session writes anew: those that may be trusted first."""
    found = [one for one in memories if is_unwritten(one)]
    is_tainted = bool(found) and all(one.is_tainted for one in found)
    kept: list[MergedSummary] = []
    size = 0
    for one in found:
        size += len(one.content.encode()) if one.is_tainted is is_tainted else 0
        if size > BYTES_MAX or len(kept) == SUMMARIES_MAX:
            break
        if one.is_tainted is is_tainted:
            kept.append(MergedSummary(id=one.id, text=one.content))
    return Unwritten(tuple(kept), is_tainted)


async def _check(
    context: CheckContext, known: KnownRow, _begun: SlotEntry, _now: datetime
) -> MergedCheck:
    found = await new_signals.read(context.bus, known.scope, known.read_seq, KINDS, name=_kind_of)
    if not found.counts:
        known.checked_seq = found.through
        return MergedCheck(found)
    unwritten = await _unwritten(context.bus, known.scope)
    return MergedCheck(found, unwritten, context.config.cortex.summary_rewriting)


def _kind_of(_message: object) -> str:
    return KINDS[0]


async def _unwritten(bus: Bus, whose: Scope) -> Unwritten:
    """Raises: VigilError, memory doesn't answer."""
    memory = MemoryClient(bus)
    found: list[Memory] = []
    after = ""
    for _ in range(PAGES_MAX):
        asked = ListMemories(types=("summary",), limit=LIMIT_MAX, after=after)
        page: Listed = await memory.ask(whose, asked)
        found += page.memories
        after = page.next_after or ""
        if not after:
            break
    return chosen(found)


def _decide(known: KnownRow, begun: SlotEntry, seen: object, now: datetime) -> CheckOutcome | None:
    if not isinstance(seen, MergedCheck):
        return None
    cycles, interval = known.ledger.cycles or CycleLedger(), system_rows.interval_of(known.row)
    until = paused_until(cycles, known.ledger.failures, interval)
    if not seen.unwritten.summaries:
        return CheckOutcome(skipped(begun, NOTHING_MERGED, seen.signals.through))
    if not seen.has_model:
        return CheckOutcome(skipped(begun, OFF))
    if until is not None and now < until:
        return CheckOutcome(skipped(begun, FAILING.format(at=until)))
    outcome = replace(begun, told_seq=seen.signals.through)
    return CheckOutcome(outcome, prepared=seen.unwritten)


async def _prepare(context: CheckContext, known: KnownRow, _run: OpenRun) -> Unwritten:
    return await _unwritten(context.bus, known.scope)


def start_of(_row: TimetableRow, _run: OpenRun, unwritten: Unwritten, _config: Config) -> Start:
    """Begin with the summaries, and nothing else."""
    return Start(
        prompt=PROMPT.format(count=len(unwritten.summaries)),
        summaries=unwritten.summaries,
        is_tainted=unwritten.is_tainted,
    )


KIND: Final = RowKind(
    work=MaintenanceWork,
    row=row_of,
    start=start_of,
    check=_check,
    decide=_decide,
    must_prepare=lambda _row, _run: True,
    prepare=_prepare,
    quiet=(NOTHING_MERGED, OFF),
)
