"""Rows of the timetable whose scheduler, executor, cortex and broker are killed (J-4, X-5)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.chaos.killable import NO_SANDBOX, killable, steps_of
from tests.support.examples import repeats
from tests.support.pauses import pauses
from vigil.board.kept import FACTS, ROWS, KeptBoard, Revision
from vigil.bus.bus import Bus
from vigil.contracts import Change, Control, SlotEntry, TimetableRow, decode_event
from vigil.contracts.board import (
    AfterSchedule,
    CronWork,
    EverySchedule,
    FactShape,
    Schedule,
    Watched,
    WatchedFiles,
    YesNo,
)
from vigil.errors import Unavailable, WrongLastSequence
from vigil.facts.taken import SAME
from vigil.subjects import Scope, SessionKey
from vigil.timetable.chain import is_end
from vigil.timetable.log import SlotLog
from vigil.timetable.schedule import upcoming

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

POINTS: Final = (
    "scheduler.slot.looked",
    "scheduler.slot.decided",
    "scheduler.slot.begun",
    "scheduler.slot.ended",
)
ROUNDS: Final = repeats(5, fast=1)
PLAN: Final = {
    "scheduler": POINTS * ROUNDS,
    "executor": ("executor.slot.told", "executor.slot.ended") * ROUNDS,
    "cortex": ("cortex.commit.before", "cortex.commit.after") * ROUNDS,
}
"""Eight kills a round, and the broker's: 41 in `make chaos`."""
PATIENCE_S: Final = 120.0
WHOSE: Final = Scope("vigil", "ann")
HOME: Final = SessionKey("ann", "vigil", "main")


def row(
    id_: str,
    schedule: Schedule,
    timeout_s: int = 60,
    watch: Watched | None = None,
    facts: dict[str, FactShape] | None = None,
) -> TimetableRow:
    now = datetime.now(UTC)
    return TimetableRow(
        id=id_ * 32,
        owner="ann",
        agent="vigil",
        name=f"row {id_}",
        work=CronWork(prompt="Look around", timeout_s=timeout_s, watch=watch, facts=facts or {}),
        schedule=schedule,
        misfire="all",
        is_ordered=True,
        made_at=now,
        scheduled_at=now,
    )


async def removed(bus: Bus, one: TimetableRow) -> Revision[TimetableRow]:
    """Remove a row, whoever changes it meanwhile."""
    board = KeptBoard(bus, ROWS)
    while True:
        with contextlib.suppress(Unavailable, WrongLastSequence):
            now, found = datetime.now(UTC), await board.find([WHOSE], one.id)
            assert found is not None
            ended = replace(found.entity, is_removed=True)
            return await board.replace(found.number, ended, Change(by="ann"), now)
        await asyncio.sleep(0.1)


async def decided(bus: Bus, one: TimetableRow, until: datetime) -> list[SlotEntry]:
    """Return a ledger in which nothing is left to decide, oldest first."""
    instants = list(takewhile(lambda at: at <= until, upcoming(one, one.scheduled_at - SHORT)))
    log = SlotLog(bus)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            ledger = (await log.last(WHOSE, one.id)).ledger
            if not ledger.running and ledger.through is not None and ledger.through >= instants[-1]:
                break
            await asyncio.sleep(next(pause_s))
    entries = [entry async for entry in log.newest(WHOSE, one.id)][::-1]
    final = [entry for entry in entries if entry.state != "running"]
    for at in instants:
        holders = [e for e in final if (e.first_at or e.due_at) <= at <= e.due_at]
        assert len(holders) == 1, (at, holders)
    assert sum(entry.count for entry in final) == len(instants)
    return entries


async def followed(bus: Bus, one: TimetableRow, others: list[SlotEntry]) -> list[SlotEntry]:
    """Return the ledger of a row that follows another, once each end of that has had its run."""
    ends = [e for e in others if e.row == "a" * 32 and is_end(e)]
    log = SlotLog(bus)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while (ledger := (await log.last(WHOSE, one.id)).ledger).running or (
            ledger.runs < len(ends)
        ):
            await asyncio.sleep(next(pause_s))
    await removed(bus, one)
    entries = [entry async for entry in log.newest(WHOSE, one.id)][::-1]
    begun = [entry for entry in entries if entry.state == "running"]
    assert len(begun) == len({entry.followed for entry in begun}) == len(ends)
    assert [entry.follows for entry in begun] == [end.session for end in ends]
    assert len(entries) == 2 * len(ends)
    return entries


async def looked(bus: Bus, one: TimetableRow) -> None:
    """Wait until a watcher has looked, and keeps what it saw."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while (await SlotLog(bus).last(WHOSE, one.id)).ledger.seen is None:
            await asyncio.sleep(next(pause_s))


async def changed(bus: Bus, one: TimetableRow) -> None:
    """Wait until a watcher has had something run."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while not (await SlotLog(bus).last(WHOSE, one.id)).ledger.runs:
            await asyncio.sleep(next(pause_s))


SHORT: Final = timedelta(microseconds=1)


@pytest.mark.repeated
async def test_each_slot_ends_in_one_state_whoever_dies(tmp_path: Path) -> None:
    """J-4, L-2, L-12: each run begins once, each result is told once, nothing is left out; what is
    watched changes once and has one run, whoever had seen it (L-3)."""
    file = tmp_path / "workspaces" / "vigil" / "ann" / "news.md"
    async with killable(tmp_path, steps_of(PLAN), NO_SANDBOX) as (stack, processes):
        watch = WatchedFiles(glob="*.md")
        admin = await stack.bus("admin")
        every, follows = EverySchedule(interval_s=1), AfterSchedule(row="a" * 32, on="any")
        rows = [
            row("a", every, facts={"up": YesNo()}),
            row("b", EverySchedule(interval_s=2), 0),
            row("c", every, watch=watch),
        ]
        follower = row("d", follows)
        over = asyncio.create_task(processes.plans_over(PATIENCE_S * ROUNDS))
        for one in (*rows, follower):
            await KeptBoard(admin, ROWS).replace(0, one, Change(by="ann"), one.made_at)
        await asyncio.sleep(3)
        stack.broker.kill()
        await over
        await looked(admin, rows[2])
        file.write_text("news")
        await changed(admin, rows[2])
        ends = {exit_.crash_at.partition(":")[0] for exit_ in processes.exits if exit_.is_crash}
        assert ends == {point for points in PLAN.values() for point in points}
        entries = []
        for one in rows:
            entries += await decided(admin, one, (await removed(admin, one)).at)
        entries += await followed(admin, follower, entries)
        changes = [one.change for one in entries if one.change and one.row == "c" * 32]
        assert changes == ["added: news.md, 4 bytes"]
        await _check_sessions(admin, entries)
        await _check_told(admin, entries)
        await _check_facts(admin, entries)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]


async def _check_sessions(bus: Bus, entries: list[SlotEntry]) -> None:
    """Each run that the ledger begins is one session, and there is no other."""
    begun = [entry.session for entry in entries if entry.state == "running"]
    assert len(set(begun)) == len(begun)
    events = [decode_event(m.data) for m in await bus.read("SYSTEM", ["system.*.*.*.in.control"])]
    starts = [e for e in events if isinstance(e, Control) and e.payload.op == "start"]
    assert sorted(event.session_key for event in starts) == sorted(begun)


async def _check_facts(bus: Bus, entries: list[SlotEntry]) -> None:
    """F-10: what each good run told was taken once, and counted once."""
    filled = [one.facts for one in entries if one.row == "a" * 32 and one.state in ("ran", "late")]
    found = await KeptBoard(bus, FACTS).find([WHOSE], "a" * 32)
    assert found is not None
    kept = await KeptBoard(bus, FACTS).history(found)
    causes = [one.change.cause for one in kept]
    assert len(set(causes)) == len(causes)
    assert causes == [one.cause for one in filled if one is not None][-len(causes) :]
    assert found.entity.spent == SAME * len(filled)


async def _check_told(bus: Bus, entries: list[SlotEntry]) -> None:
    told = await bus.read("SESSIONS", [HOME.in_event("told.*")])
    assert len(told) == sum(entry.delivery == "told" for entry in entries)
