"""What the entries of a row's ledger come to, one after the other (SPEC J-4). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..backoff import Backoff
from ..contracts import (
    SlotEntry,
    TimetableRow,
)
from ..contracts.board import (
    CycleLedger,
    CycleReport,
    Delivery,
    FactFill,
    Ledger,
    MindWork,
    OpenRun,
    SlotState,
    kind_of,
)
from ..contracts.board.vocabulary import Trigger
from ..minds import mind_of
from ..subjects import Scope, SessionKey, token_of
from . import cycles
from .schedule import has_run, upcoming

RUNNING_MAX: Final = 10
"""Runs of one row at a time, if they may overlap: each is in every entry until it ends."""
FAILURES_MAX: Final = 10
"""A row whose runs fail so often, one after the other, is paused."""
LOST_AFTER: Final = timedelta(minutes=10)
"""A run that was told to end and hasn't for so long is lost."""
MIND: Final = "mind"
"""The kind of the rows that are due because goals are."""
CRON: Final = "cron"
"""The kind of the rows that people make: of them nobody looks what is new by signals."""


class RunCost(NamedTuple):
    """What a run's own calls of models took."""

    tokens: int = 0
    micro_usd: int = 0


FREE: Final = RunCost()
ENDS: Final[tuple[SlotState, ...]] = ("ran", "late", "failed")
"""How a run ends."""


def after(ledger: Ledger, entry: SlotEntry) -> Ledger:
    """Return the ledger with one more entry."""
    if entry.set_back_from is not None:
        return _set_back(ledger, entry)
    others = tuple(one for one in ledger.running if not is_of(one, entry))
    waiting = tuple(one for one in ledger.waiting if not is_of(one, entry))
    is_again = len(waiting) < len(ledger.waiting)
    is_end = len(others) < len(ledger.running) or is_again
    counts = is_end and not entry.is_by_hand
    told_seq = 0 if ledger.cycles is None else ledger.cycles.told_seq
    ledger = _with_cycle(ledger, entry)
    if entry.state == "running":
        ledger = replace(ledger, runs=ledger.runs + (not entry.is_by_hand and not is_again))
        others += (_run(entry, told_seq),)
    elif entry.state == "waiting":
        waiting += (_run(entry, told_seq),)
    elif entry.state in ENDS and counts:
        failures = ledger.failures + 1 if entry.state == "failed" else 0
        ledger = replace(ledger, failures=failures, ended_at=entry.at, next_s=entry.next_s)
    elif entry.state == "skipped" and counts:
        ledger = replace(ledger, runs=ledger.runs - 1)
    through = ledger.through
    # The end of a run from before the clock was set back is ahead, and decides nothing of that.
    is_known = entry.is_by_hand or is_end or has_run(ledger, entry.due_at)
    if not is_known and (through is None or entry.due_at > through):
        through = entry.due_at
    if through is not None and ledger.ran_through is not None and through > ledger.ran_through:
        ledger = replace(ledger, ran_from=None, ran_through=None)
    return replace(
        ledger,
        running=others,
        waiting=waiting,
        through=through,
        followed=max(ledger.followed, entry.followed),
        followed_fact=max(ledger.followed_fact, entry.followed_fact),
    )


def _set_back(ledger: Ledger, entry: SlotEntry) -> Ledger:
    """Return a ledger of which nothing is decided beyond the clock as it is now."""
    starts = [one for one in (ledger.ran_from, entry.ran_from) if one is not None]
    ends = [one for one in (ledger.ran_through, entry.ran_through) if one is not None]
    ended_at = ledger.ended_at and min(ledger.ended_at, entry.at)
    # Or a run that gives no end would hold the row up for as long as the clock was ahead.
    running = tuple(replace(one, at=min(one.at, entry.at)) for one in ledger.running)
    waiting = tuple(
        replace(one, again_at=min(one.again_at, entry.at)) for one in ledger.waiting if one.again_at
    )
    return replace(
        ledger,
        running=running,
        waiting=waiting,
        through=entry.due_at,
        ended_at=ended_at,
        ran_from=min(starts, default=None),
        ran_through=max(ends, default=None),
    )


def is_busy(row: TimetableRow, ledger: Ledger) -> bool:
    """Whether another run of a row would be one too many, whoever begins it."""
    return len(ledger.running) >= (RUNNING_MAX if row.may_overlap else 1)


def _with_cycle(ledger: Ledger, entry: SlotEntry) -> Ledger:
    if cycles.kind_of(entry) == CRON:
        return ledger
    before = ledger.cycles or CycleLedger()
    run = next((one for one in ledger.running if is_of(one, entry)), None)
    if entry.state == "running" or entry.told_seq:
        return replace(ledger, cycles=cycles.begun(before, entry))
    if entry.state == "skipped" and run is not None:
        return replace(ledger, cycles=replace(before, told_seq=run.told_seq))
    if entry.state in ENDS and run is not None:
        return replace(ledger, cycles=cycles.ended(before, run, entry))
    return ledger


def ledger_of(entries: Iterable[SlotEntry]) -> Ledger:
    """Fold all entries of a row, oldest first."""
    ledger = Ledger()
    for entry in entries:
        ledger = after(ledger, entry)
    return ledger


def kept(row: TimetableRow, ledger: Ledger, since: datetime) -> Ledger:
    """Return a ledger as it stands where no entry of before `since` is kept any more: what was due
    before that is decided, and a row that runs once and was due has run."""
    if ledger.through is not None or row.scheduled_at >= since:
        return ledger
    first = next(upcoming(row, row.scheduled_at - timedelta(microseconds=1)), None)
    is_over = row.runs_once and first is not None and first < since
    return replace(ledger, through=since, runs=max(ledger.runs, int(is_over)))


def is_of(run: OpenRun, entry: SlotEntry) -> bool:
    """Whether an entry is about that run."""
    return (run.due_at, run.is_by_hand) == (entry.due_at, entry.is_by_hand)


def trigger_of(entry: SlotEntry) -> Trigger:
    """Return what had a run begin, or would have.

    An end of a run that followed another's didn't say so in older versions: it reads as scheduled.

    >>> at = datetime(2026, 5, 1, 8)
    >>> trigger_of(SlotEntry(row="1f", kind="mind", due_at=at, at=at, state="ran"))
    'goal'
    """
    if entry.is_by_hand:
        return "manual"
    if entry.follows or entry.followed or entry.followed_fact:
        return "chained"
    return "goal" if entry.kind == MIND else "scheduled"


def _run(entry: SlotEntry, told_seq: int) -> OpenRun:
    return OpenRun(
        due_at=entry.due_at,
        at=entry.at,
        session=entry.session,
        is_by_hand=entry.is_by_hand,
        is_late=entry.is_late,
        change=entry.change,
        looks=entry.looks,
        is_trusted=entry.is_trusted,
        told_seq=told_seq,
        follows=entry.follows,
        followed_fact=entry.followed_fact,
        tries=entry.tries,
        again_at=entry.again_at,
        again_until=entry.again_until,
    )


def session_of(
    row: TimetableRow, due_at: datetime, *, by_hand: str = "", tries: int = 0
) -> SessionKey:
    """Return the session that runs a slot: for a row and an instant always the same; of a mind it
    is the one that it has.

    Args:
        by_hand: what orders a run beside the schedule, for which it is always the same.
        tries: how often the slot was begun before.
    """
    if isinstance(row.work, MindWork):
        return mind_of(Scope(row.agent, row.owner))
    slot = ("slot", row.id, due_at.isoformat(), *([str(tries)] if tries else []))
    of = ("hand", row.id, by_hand) if by_hand else slot
    return SessionKey(row.owner, row.agent, "").of_kind(kind_of(row.work), token_of(*of))


def begun(row: TimetableRow, now: datetime, order: str = "") -> SlotEntry:
    """Return the entry that has a row run at once, by hand.

    Args:
        order: what orders it; empty: this very moment does.
    """
    return SlotEntry(
        row=row.id,
        kind=kind_of(row.work),
        due_at=now,
        state="running",
        at=now,
        is_by_hand=True,
        session=str(session_of(row, now, by_hand=order or now.isoformat())),
    )


AGAIN: Final = Backoff(60.0, 1800.0)
"""How long a run waits that no model answered, before it is begun again."""


def put_off(row: str, run: OpenRun, now: datetime, until: datetime, why: str) -> SlotEntry | None:
    """Return the entry by which a run that no model answered is begun again later; None: it would
    be later than `until`."""
    again_at = now + timedelta(seconds=AGAIN.after(run.tries + 1))
    if again_at > until:
        return None
    run = replace(run, tries=run.tries + 1)
    waiting = entry_of(row, run, "waiting", now)
    reason = f"It is begun again at {again_at:%Y-%m-%d %H:%M:%S} UTC: {why}"
    return replace(waiting, reason=reason, again_at=again_at, again_until=until)


def entry_of(row: str, run: OpenRun, state: SlotState, now: datetime) -> SlotEntry:
    """Return an entry about a run that goes on, with all that is known of it."""
    return SlotEntry(
        row=row,
        kind=SessionKey.parse(run.session).kind,
        due_at=run.due_at,
        state=state,
        at=now,
        is_by_hand=run.is_by_hand,
        session=run.session,
        is_late=run.is_late,
        change=run.change,
        is_trusted=run.is_trusted,
        looks=run.looks,
        follows=run.follows,
        followed_fact=run.followed_fact,
        tries=run.tries,
    )


def ended(
    row: str,
    run: OpenRun,
    now: datetime,
    *,
    problem: str = "",
    delivery: Delivery = "",
    report: CycleReport | None = None,
    next_s: int = 0,
    facts: FactFill | None = None,
    cost: RunCost = FREE,
    told: str = "",
    told_to: str = "",
    told_seq: int = 0,
    is_skipped: bool = False,
) -> SlotEntry:
    """Return the final entry of a run.

    Args:
        problem: why it failed; empty: it didn't.
        report: of a cycle.
        next_s: after how long it wants the next; 0: it said nothing.
        facts: what came of those that its row names.
        told, told_to, told_seq: as of the entry.
        is_skipped: whether nothing was done after all, for that problem.
    """
    good: SlotState = "late" if run.is_late else "ran"
    return SlotEntry(
        row=row,
        kind=SessionKey.parse(run.session).kind if run.session else "",
        due_at=run.due_at,
        state="skipped" if is_skipped else "failed" if problem else good,
        reason=problem,
        at=now,
        is_by_hand=run.is_by_hand,
        session=run.session,
        is_late=run.is_late,
        follows=run.follows,
        followed_fact=run.followed_fact,
        tries=run.tries,
        delivery=delivery,
        report=report,
        next_s=next_s,
        facts=facts,
        tokens=cost.tokens,
        micro_usd=cost.micro_usd,
        told=told,
        told_to=told_to,
        told_seq=told_seq,
    )
