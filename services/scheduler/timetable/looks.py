"""What has to be new before a row is run: asked without a model (LOOPS L-3).

A row whose work is that is due as any row is; but where another would be run, it's looked first.
Who looks, and what follows from what they saw, is a matter of the kind of work. Slots side by side
for which there was nothing new are one entry.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.bus.bus import Bus
from vigil.contracts import SlotEntry
from vigil.contracts.board import OpenRun, Watched, watch_of
from vigil.observe import trace
from vigil.timetable.probe import (
    EXECUTOR_PROBE,
    TIMEOUT_S,
    ProbeAnswer,
    ProbeQuestion,
    decode_answer,
)
from vigil.timetable.probe import encode as encode_probe

from . import cycle, events, news, watch
from .known import KnownRow
from .news import News
from .watch import LookOutcome

QUIET: Final = (watch.UNCHANGED, watch.WAITS, cycle.NOTHING_NEW)
"""Reasons of entries that may wait for others like them."""
RANGE_MAX: Final = 60
"""Slots that one entry stands for."""
RANGE_FOR: Final = timedelta(hours=1)
"""How long an entry may wait to be stored: after a crash its slots count as missed, and it's looked
again."""


async def ask(bus: Bus, known: KnownRow, begun: SlotEntry, now: datetime) -> ProbeAnswer | News:
    """Look for what is new.

    Args:
        begun: the entry of the slot, if it is run.

    Raises:
        VigilError: it can't be asked now.
    """
    watched = watch_of(known.row.work)
    if watched is None:
        cycles = known.ledger.cycles
        since = 0 if cycles is None else cycles.told_seq
        return await news.read(bus, known.scope, since)
    run = OpenRun(due_at=begun.due_at, at=now, session=begun.session)
    return await _probed(bus, known, run, watched)


async def _probed(bus: Bus, known: KnownRow, run: OpenRun, watched: Watched) -> ProbeAnswer:
    """Have the executor look at what is watched. Raises: VigilError."""
    question = ProbeQuestion(
        session=run.session,
        slot=events.slot_of(known.row, run),
        watch=watched,
        seen=known.ledger.seen,
        after=known.last.seq,
    )
    answer = await bus.ask(
        EXECUTOR_PROBE, encode_probe(question), timeout=TIMEOUT_S, headers=headers()
    )
    return decode_answer(answer.data)


def waits(known: KnownRow, run: OpenRun) -> bool:
    """Whether it has to be looked what is there before a run by hand is begun."""
    is_watcher = watch_of(known.row.work) is not None
    return is_watcher and run.is_by_hand and known.by_hand.get(run.session) is None


async def shown(bus: Bus, known: KnownRow, run: OpenRun) -> OpenRun:
    """Return a run by hand with what is there now. It's run in any case, and nothing is kept of
    the look: the schedule goes on as if it hadn't been.

    Raises:
        VigilError: it can't be asked now.
    """
    watched = watch_of(known.row.work)
    if watched is None:
        return run
    answer = await _probed(bus, known, run, watched)
    return replace(run, change=watch.told_of(answer), is_trusted=answer.is_trusted)


def decided(known: KnownRow, begun: SlotEntry, now: datetime) -> LookOutcome | None:
    """Return what becomes of a slot, by what was seen; None: it has to be looked first."""
    answer, watched = known.answer, watch_of(known.row.work)
    known.answer = None
    if watched is None:
        if not isinstance(answer, News):
            return None
        return LookOutcome(cycle.decided(known.row, begun, known.ledger, answer, now), None)
    if watch.must_wait(known.ledger.seen, watched, now):
        return LookOutcome(watch.waited(begun), None)
    if not isinstance(answer, ProbeAnswer) or not watch.is_about(answer, watched):
        return None
    return watch.looked(begun, watched, known.ledger.seen, answer)


def is_quiet(entry: SlotEntry) -> bool:
    """Whether an entry may wait for others like it."""
    return entry.state == "skipped" and entry.reason in QUIET


def is_due(quiet: SlotEntry, following: datetime | None) -> bool:
    """Whether an entry may wait no longer: the next slot isn't soon, or never comes."""
    since = quiet.first_at or quiet.due_at
    return following is None or following - since >= RANGE_FOR


def joined(quiet: SlotEntry | None, entry: SlotEntry) -> SlotEntry | None:
    """Return one entry for both; None: they are of two kinds, or it would be too long."""
    if quiet is None:
        return entry
    if quiet.reason != entry.reason or quiet.count >= RANGE_MAX:
        return None
    since = quiet.first_at or quiet.due_at
    return replace(entry, count=quiet.count + entry.count, first_at=since)


def headers() -> dict[str, str]:
    """Return those of whatever is stored or asked here."""
    return {trace.HEADER: trace.passed_on(trace.new())}
