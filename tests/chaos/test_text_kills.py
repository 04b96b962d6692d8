"""Texts of bulletins and summaries while whoever makes and stores them is killed (C-2, M-6)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from services.memory.rules.merge import merge
from services.scheduler.timetable.kinds import bulletin, maintenance
from tests.chaos.killable import NO_SANDBOX, assert_each_was_killed, killable, steps_of
from tests.chaos.test_cycle_kills import PASSAGES, PATIENCE_S, WHOSE, over
from tests.support.memories import Asking, until
from tests.support.memory_records import about, saved
from vigil.board.kept import BULLETINS, ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import Change, MemoriesMerged, MemorySaved, TimetableRow, encode
from vigil.contracts.board.bulletin import CURRENT
from vigil.errors import Unavailable
from vigil.memory.operations.list import ListMemories
from vigil.memory.questions import MemoryView
from vigil.memory.summaries import rewritten_id
from vigil.settings.config import Config
from vigil.subjects import signals_of
from vigil.timetable.log import SlotLog

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

PLAN: Final = {
    "scheduler": ("scheduler.slot.begun",),
    "cortex": ("cortex.model.after_call", "cortex.commit.after"),
    "executor": ("executor.slot.ended",),
    "memory": ("memory.save.after",),
}
NOTES: Final = ("Ann rides on Fridays", "Her horse is called Oats", "Oats has a new saddle")
SOON: Final = timedelta(seconds=2)


async def known(bus: Bus) -> str:
    """Have notes of ten days ago, merged; return the summary's id."""
    now = datetime.now(UTC)
    old = now - timedelta(days=10)
    made = [saved(n, text, stability="volatile", created_at=old) for n, text in enumerate(NOTES, 1)]
    memories = [one.record.memory for one in made if isinstance(one.record, MemorySaved)]
    for one in made:
        await bus.publish(WHOSE.record("save"), encode(one.record))
    merged = merge(memories, now)
    record = MemoriesMerged(**about(9), memory=merged.memory, merged_ids=merged.merged_ids)
    await bus.publish(WHOSE.record("merge"), encode(record))

    async def is_told() -> bool:
        where = signals_of(WHOSE.owner, agent=WHOSE.agent, kind="memory.merged")
        return await bus.get_last("SIGNALS", where) is not None

    await until(is_told, "the merge is news", within_s=PATIENCE_S)
    return merged.memory.id


async def begun(bus: Bus) -> list[TimetableRow]:
    """Store ann's rows, whose first slots are due in a moment."""
    now = datetime.now(UTC)
    rows = [
        kind.row_of(Config(), WHOSE, "UTC", now - kind.FIRST_AFTER + SOON)
        for kind in (bulletin, maintenance)
    ]
    for row in rows:
        await KeptBoard(bus, ROWS).replace(0, row, Change(by="system"), now)
    return rows


async def test_each_text_is_stored_once_whoever_dies(tmp_path: Path) -> None:
    """Neither a bulletin nor a summary is lost, or written twice."""
    async with killable(tmp_path, steps_of(PLAN, PASSAGES), NO_SANDBOX) as (stack, running):
        admin = await stack.bus("admin")
        summary = await known(admin)
        plans = asyncio.create_task(running.plans_over(2 * PATIENCE_S))
        rows = await begun(admin)
        for row in rows:
            await over(admin, row, 1)
        await plans
        assert_each_was_killed(running, PLAN)
        for row in rows:
            ends = [entry.state async for entry in SlotLog(admin).newest(WHOSE, row.id)]
            assert ends == ["ran", "running"], row.name
        board = KeptBoard(admin, BULLETINS)
        there = await board.find([WHOSE], CURRENT)
        assert there is not None
        texts = [one for one in await board.history(there) if one.entity.made_by == "model"]
        assert len({one.change.cause for one in texts}) == len(texts) >= 1
        found: list[MemoryView] = []

        async def is_listed() -> bool:
            with contextlib.suppress(Unavailable):  # it starts again after its kill
                listed = await Asking(admin, WHOSE).ask(ListMemories(types=("summary",)))
                found[:] = listed.memories
            return bool(found)

        await until(is_listed, "memory answers")
        (written,) = found
        assert written.id == rewritten_id(summary)
        assert all(note in written.content for note in NOTES)
