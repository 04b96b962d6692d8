"""A run that gives no end, across schedulers: it counts from when it was told to end (J-4, C-5)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.support.gateway import until
from tests.support.stack import running_stack
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, Control, TimetableRow, decode_event
from vigil.contracts.board import CronWork, EverySchedule
from vigil.subjects import Scope, SessionKey
from vigil.timetable import reasons
from vigil.timetable.ledger import LOST_AFTER
from vigil.timetable.log import SlotLog

WHOSE: Final = Scope("vigil", "ann")
ROW: Final = "1f" * 16
PATIENCE_S: Final = 40.0


async def test_who_takes_over_waits_no_longer_for_a_run_that_was_told_to_end(
    tmp_path: Path,
) -> None:
    """Nobody works on it. A scheduler that is new waited ten minutes once more."""
    clock = StoppedClock()
    off = {"memory": {"warm_wait_s": 0}}
    async with running_stack(tmp_path, ("scheduler",), clock=clock, **off) as stack:
        bus, now = await stack.bus("admin"), clock.now()
        row = TimetableRow(
            id=ROW,
            owner="ann",
            agent="vigil",
            name="look",
            work=CronWork(prompt="Look around", timeout_s=60),
            schedule=EverySchedule(interval_s=86_400),
            is_ordered=True,
            made_at=now,
            scheduled_at=now,
        )
        await KeptBoard(bus, ROWS).replace(0, row, Change(by="ann"), now)
        log = SlotLog(bus)

        async def events() -> list[Control]:
            (run,) = (await log.last(WHOSE, ROW)).ledger.running
            key = SessionKey.parse(run.session)
            stored = [decode_event(one.data) for one in await bus.read("SYSTEM", [key.in_all])]
            return [one for one in stored if isinstance(one, Control)]

        async def is_begun() -> bool:
            return bool((await log.last(WHOSE, ROW)).ledger.running) and len(await events()) == 1

        async def is_told_to_end() -> bool:
            return len(await events()) == 2

        await until(is_begun, "it is begun", PATIENCE_S)
        clock.move(61)
        await until(is_told_to_end, "it is told to end", PATIENCE_S)
        told_at = clock.now()
        clock.move(LOST_AFTER.total_seconds() - 60)
        await stack.stop("scheduler")
        await stack.start("scheduler")
        clock.move(62)

        async def is_lost() -> bool:
            clock.move(0.1)  # what is looked at again in a second, is
            return not (await log.last(WHOSE, ROW)).ledger.running

        await until(is_lost, "it is given up", PATIENCE_S)
        entries = [entry async for entry in log.newest(WHOSE, ROW)]
        assert [one.state for one in entries] == ["failed", "running"]
        assert entries[0].reason == reasons.LOST
        assert entries[0].at - told_at < LOST_AFTER + timedelta(minutes=2)
        key = SessionKey.parse(entries[0].session)
        assert len(await bus.read("SYSTEM", [key.in_all])) == 2, "it is told to end once"
