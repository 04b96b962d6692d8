"""A home with its timetable on another machine, a week later (issue 15, LOOPS L-4, SPEC X-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from services.scheduler.timetable import clock as timetable
from tests.keeping.test_backup import restored, save
from tests.support.pauses import pauses
from tests.support.stack import Stack, settings_of
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.broker.process import Broker
from vigil.bus.bus import Bus
from vigil.contracts import Change, SlotEntry, TimetableRow
from vigil.contracts.board import (
    AfterSchedule,
    ChosenSchedule,
    CronSchedule,
    CronWork,
    OnceSchedule,
)
from vigil.settings.sections import Nats
from vigil.subjects import Scope
from vigil.timetable.ledger import ended, session_of
from vigil.timetable.log import Placed, SlotLog
from vigil.timetable.schedule import upcoming

WHOSE: Final = Scope("vigil", "ann")
LEFT_AT: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
BACK_AT: Final = LEFT_AT + timedelta(days=7, minutes=-170)
"""Ten minutes past nine."""
PATIENCE_S: Final = 30.0


def row(id_: str, schedule: Any, misfire: Any = "latest") -> TimetableRow:
    return TimetableRow(
        id=id_ * 32,
        owner="ann",
        agent="vigil",
        name=id_,
        work=CronWork(prompt="look"),
        schedule=schedule,
        misfire=misfire,
        is_ordered=True,
        made_at=LEFT_AT - timedelta(days=1),
        scheduled_at=LEFT_AT - timedelta(days=1),
    )


DAILY: Final = CronSchedule(expression="0 9 * * *", zone="UTC")
ROWS_THERE: Final = (
    row("1", DAILY),
    row("2", DAILY, "skip"),
    row("3", DAILY, "all"),
    row("4", CronSchedule(expression="0 6 * * *", zone="UTC")),  # by three hours: too late
    row("5", AfterSchedule(row="1" * 32), "all"),
    row("6", ChosenSchedule(interval_s=86_400, soonest_s=600, latest_s=7 * 86_400)),
)
LAST: Final = replace(row("7", OnceSchedule(at=BACK_AT)), made_at=BACK_AT, scheduled_at=BACK_AT)
EXPECTED: Final[dict[str, list[tuple[str, int]]]] = {
    "1": [("coalesced", 6), ("late", 1)],
    "2": [("missed", 7)],
    "3": [("late", 1)] * 7,
    "4": [("missed", 7)],
    "5": [("late", 1), ("ran", 1)],  # after the run of before, and after the one that is run now
    "6": [("missed", 6)],
}


@asynccontextmanager
async def running_there(home: Path) -> AsyncIterator[Stack]:
    """The restored home on its new machine, with a scheduler."""
    broker, clock = Broker(Nats(), home=home), StoppedClock()
    clock.move((BACK_AT - clock.now()).total_seconds())
    await broker.start()
    stack = Stack(broker, settings_of(home, memory={"warm_wait_s": 0}), clock)
    try:
        yield stack
    finally:
        await stack.close()
        await broker.stop()


async def entries(bus: Bus, one: TimetableRow) -> list[SlotEntry]:
    """Those that were made there, the oldest first."""
    found = [entry async for entry in SlotLog(bus).newest(WHOSE, one.id)]
    return [entry for entry in found[::-1] if entry.at >= BACK_AT]


async def until_decided(bus: Bus, expected: dict[str, list[tuple[str, int]]]) -> None:
    """Wait until the rows have these final entries, and no others."""
    found: dict[str, list[tuple[str, int]]] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while found != expected:
                await asyncio.sleep(next(pause_s))
                rows = [one for one in (*ROWS_THERE, LAST) if one.name in expected]
                found = {one.name: said_of(await entries(bus, one)) for one in rows}
    except TimeoutError:
        raise AssertionError(found) from None


async def test_each_slot_missed_meanwhile_is_decided_once_by_its_rows_policy(
    bare: Stack, tmp_path: Path, monkeypatch: Any
) -> None:
    """What was run before isn't run again, and a chain goes on where it was."""
    monkeypatch.setattr(timetable, "POLL_S", 0.05)
    admin, home, file = await bare.bus("admin"), tmp_path / "new", tmp_path / "b.tar"
    for one in ROWS_THERE:
        await KeptBoard(admin, ROWS).replace(0, one, Change(by="ann"), one.made_at)
        if not isinstance(one.schedule, AfterSchedule):
            await run_before(admin, one)
    await save(admin, bare.settings, file)
    await restored(file, home)
    async with running_there(home) as there:
        bus = await there.bus("admin")
        ending = asyncio.create_task(end_all(bus))
        await there.start("scheduler")
        await until_decided(bus, EXPECTED)
        await there.stop("scheduler")
        # The next term finds nothing more to decide: it has looked at all once the last one ran.
        await KeptBoard(bus, ROWS).replace(0, LAST, Change(by="ann"), BACK_AT)
        await there.start("scheduler")
        await until_decided(bus, EXPECTED | {LAST.name: [("ran", 1)]})
        await there.stop("scheduler")
        ending.cancel()
        follower = await entries(bus, ROWS_THERE[4])
        ended_there = [entry for entry in await entries(bus, ROWS_THERE[0]) if entry.delivery]
        before = str(session_of(ROWS_THERE[0], LEFT_AT.replace(hour=9)))
        sessions = [before, *(entry.session for entry in ended_there)]
        begun = [entry.follows for entry in follower if entry.state == "running"]
        assert begun == sessions


def said_of(made: list[SlotEntry]) -> list[tuple[str, int]]:
    return [(one.state, one.count) for one in made if one.state != "running"]


async def run_before(bus: Bus, one: TimetableRow) -> None:
    """The run of the morning on which the backup was made."""
    log, now = SlotLog(bus), LEFT_AT
    (due_at,) = islice(upcoming(one, one.made_at - timedelta(microseconds=1)), 1)
    session = str(session_of(one, due_at))
    begun = SlotEntry(row=one.id, due_at=due_at, state="running", at=now, session=session)
    last = await log.append(WHOSE, Placed(), begun)
    (run,) = last.ledger.running
    await log.append(WHOSE, last, ended(one.id, run, now))


async def end_all(bus: Bus) -> None:
    """End whatever runs, as an executor does."""
    log = SlotLog(bus)
    pause_s = pauses()
    while True:
        for one in (*ROWS_THERE, LAST):
            last = await log.last(WHOSE, one.id)
            for run in last.ledger.running:
                entry = ended(one.id, run, BACK_AT)
                last = await log.append(WHOSE, last, replace(entry, delivery="silent"))
        await asyncio.sleep(next(pause_s))
