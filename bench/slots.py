"""What a timetable takes: 1,000 rows that rest, 500 that come due within a minute, 500 at once.

All services run, with the rehearsal model: each slot is a session that answers and is told at home.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from bench import resting, system
from bench.numbers import percentile, report
from vigil.board.kept import ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import Change, Control, TimetableRow, decode_event
from vigil.contracts.board import CronSchedule, CronWork, OnceSchedule, Schedule

PEOPLE: Final = 10
RESTING: Final = 100
"""Rows of each person that aren't due for long."""
DUE: Final = 50
"""Rows of each person that come due."""
WINDOW_S: Final = 60.0
AHEAD_S: Final = 15.0
"""In which all rows are made, before the first is due."""
ENDED_WITHIN_S: Final = 120.0
STARTS: Final = "system.*.*.*.in.control"


async def measure(home: Path) -> None:
    """Report the CPU beyond that of an idle system, the lateness of starts, and how many there
    are a second."""
    async with system.running(home) as running:
        idle = await resting.idle(running)
        bus = await running.admin()
        await _make(bus, [CronSchedule(expression="0 3 1 1 *", zone="UTC")] * RESTING)
        cpu_pct = (await resting.idle(running))["cpu_pct"] - idle["cpu_pct"]
        report("cron_1k_idle_cpu_pct", cpu_pct, "% of a core", aim="< 1")
        count, begun_s = PEOPLE * DUE, running.cpu_s()
        late_ms = await _lateness(bus, WINDOW_S)
        cpu_ms = (running.cpu_s() - begun_s) / count * 1_000
        report("cron_500_p50_ms", percentile(late_ms, 50), "ms", slots=count)
        report(
            "cron_500_p99_ms", percentile(late_ms, 99), "ms", aim="< 1000", cpu_ms=round(cpu_ms, 1)
        )
        late_ms = await _lateness(bus, 0.0)
        report("slots_per_s", count / late_ms[-1] * 1_000, "1/s", slots=count)
        await bus.close()


async def _lateness(bus: Bus, window_s: float) -> list[float]:
    """Let rows come due over so many seconds; return how late their sessions began, sorted.

    From due to the session's first event stored, by the broker's clock, in ms.
    """
    first_at = datetime.now(UTC) + timedelta(seconds=AHEAD_S)
    step = timedelta(seconds=window_s) / (PEOPLE * DUE)
    rows = await _make(
        bus, [OnceSchedule(at=first_at + step * PEOPLE * number) for number in range(DUE)]
    )
    late: dict[str, float] = {}
    async with asyncio.timeout(AHEAD_S + window_s + ENDED_WITHIN_S):
        await asyncio.sleep(AHEAD_S + window_s)
        while len(late) < len(rows):
            await asyncio.sleep(1.0)
            for message in await bus.read("SYSTEM", [STARTS]):
                event = decode_event(message.data)
                start = event.payload.start if isinstance(event, Control) else None
                if start is not None and start.slot is not None and start.row in rows:
                    late[start.row] = (message.stored_at - start.slot.due_at) / MS
    return sorted(late.values())


MS: Final = timedelta(milliseconds=1)


async def _make(bus: Bus, schedules: Sequence[Schedule]) -> set[str]:
    """Make such rows for each person; return their ids."""
    board, made = KeptBoard(bus, ROWS), set[str]()
    for who in range(PEOPLE):
        for number, schedule in enumerate(schedules):
            now = datetime.now(UTC)
            row = TimetableRow(
                id=uuid4().hex,
                owner=f"person{who}",
                agent="vigil",
                name=f"row {number}",
                work=CronWork(prompt="What is new?"),
                schedule=schedule,
                is_ordered=True,
                made_at=now,
                scheduled_at=now,
            )
            await board.replace(0, row, Change(by="bench"), now)
            made.add(row.id)
    return made
