"""Cycles of an agent whose scheduler, cortex, executor and broker are killed (C-7, X-5)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from services.scheduler.timetable.kinds.autonomy import FIRST_AFTER, row_of
from tests.chaos.killable import NO_SANDBOX, assert_each_was_killed, killable, steps_of
from tests.support.due import give_role
from tests.support.examples import repeats
from tests.support.memories import records
from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.board.kept import ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import (
    Change,
    Control,
    MemorySaved,
    SlotEntry,
    TimetableRow,
    decode_event,
)
from vigil.errors import Unavailable, WrongLastSequence
from vigil.settings.cortex import Cortex
from vigil.subjects import Scope
from vigil.timetable import ledger
from vigil.timetable.log import SlotLog

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.repeated,
    pytest.mark.usefixtures("halved_times"),
]

PLAN: Final = {
    "scheduler": ("scheduler.slot.decided", "scheduler.slot.begun"),
    # A cycle of the rehearsal model has seven turns.
    "cortex": ("cortex.commit.before", "cortex.commit.after") * repeats(7, fast=3)
    + ("cortex.model.after_call",) * repeats(3, fast=1),
    "executor": ("executor.turn.received", "executor.slot.ended"),
    "memory": (),
}
PASSAGES: Final = {"cortex.commit.before": 2, "cortex.commit.after": 2}
"""Whoever goes on first commits that it does: a step that kills five in a row is given up."""
SETTINGS: Final = {"VIGIL_CORTEX__AUTONOMY_ENABLED": "true", **NO_SANDBOX}
PATIENCE_S: Final = 60.0
WHOSE: Final = Scope("vigil", "ann")


async def due_soon(stack: Stack, bus: Bus) -> TimetableRow:
    """Store ann's row of cycles, as the scheduler would, whose first slot is due in two seconds."""
    now = datetime.now(UTC)
    before = now - FIRST_AFTER + timedelta(seconds=2)
    config = replace(stack.settings.config, cortex=Cortex(autonomy_enabled=True))
    made = row_of(config, WHOSE, config.person_of(WHOSE.owner).timezone, before)
    await KeptBoard(bus, ROWS).replace(0, made, Change(by="system"), now)
    return made


async def over(bus: Bus, row: TimetableRow, count: int) -> None:
    """Wait until so many runs began, and none goes on."""
    log = SlotLog(bus)
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            with contextlib.suppress(Unavailable):
                entries = [entry async for entry in log.newest(WHOSE, row.id)]
                ends = sum(entry.state != "running" for entry in entries)
                if ends >= count and ends * 2 == len(entries):
                    return
            await asyncio.sleep(next(pause_s))


async def run_by_hand(bus: Bus, row: TimetableRow) -> None:
    log = SlotLog(bus)
    while True:
        with contextlib.suppress(Unavailable, WrongLastSequence):
            last = await log.last(WHOSE, row.id)
            await log.append(WHOSE, last, ledger.begun(row, datetime.now(UTC)))
            return
        await asyncio.sleep(0.1)


async def test_each_cycle_is_reported_once_whoever_dies(tmp_path: Path) -> None:
    """No finding is lost, and none is there twice, at whatever turn of a cycle a service dies."""
    async with killable(tmp_path, steps_of(PLAN, PASSAGES), SETTINGS) as (stack, processes):
        admin = await stack.bus("admin")
        give_role(stack.settings.home)
        row = await due_soon(stack, admin)
        plans = asyncio.create_task(processes.plans_over(4 * PATIENCE_S))
        count = 1
        await over(admin, row, count)
        while not plans.done() or count < 3:
            await run_by_hand(admin, row)
            if count == 1:
                stack.broker.kill()
            count += 1
            await over(admin, row, count)
        await plans
        assert_each_was_killed(processes, PLAN)
        entries = [entry async for entry in SlotLog(admin).newest(WHOSE, row.id)]
        ended = [entry for entry in entries if entry.state != "running"]
        assert {(entry.state, entry.reason) for entry in ended} == {("ran", "")}
        assert all(entry.report is not None and entry.report.found for entry in ended)
        await _check_sessions(admin, entries)
        await _check_kept(admin)


async def _check_sessions(bus: Bus, entries: list[SlotEntry]) -> None:
    """Each run that the ledger begins is one session, and there is no other."""
    begun = sorted(entry.session for entry in entries if entry.state == "running")
    assert len(set(begun)) == len(begun)
    events = [decode_event(m.data) for m in await bus.read("SYSTEM", ["system.*.*.*.in.control"])]
    starts = [e for e in events if isinstance(e, Control) and e.payload.op == "start"]
    assert sorted(event.session_key for event in starts) == begun


async def _check_kept(bus: Bus) -> None:
    """A rehearsed report names nothing that the cycle was shown: memory keeps none of it."""
    assert not [r for r in await records(bus) if isinstance(r, MemorySaved)]
