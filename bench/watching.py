"""What 1,000 watchers take whose files don't change: each is looked at once a minute."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from bench import resting, system
from bench.numbers import report
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, TimetableRow
from vigil.contracts.board import CronWork, EverySchedule, WatchedFiles
from vigil.subjects import Scope
from vigil.timetable.log import SlotLog

PEOPLE: Final = 10
WATCHERS: Final = 100
"""Of each person."""
FILES: Final = 10
"""That each watches."""
INTERVAL_S: Final = 60
LOOKED_WITHIN_S: Final = 300.0


async def measure(home: Path) -> None:
    """Report the CPU beyond that of an idle system, once all have looked for the first time."""
    async with system.running(home) as running:
        idle = await resting.idle(running)
        bus = await running.admin()
        rows = [row_of(f"watcher{who}", one) for who in range(PEOPLE) for one in range(WATCHERS)]
        for who in range(PEOPLE):
            folder = home / "workspaces" / "vigil" / f"watcher{who}"
            folder.mkdir(parents=True)
            for one in range(FILES):
                (folder / f"{one}.md").write_text("calm " * 1_000)
        for row in rows:
            await KeptBoard(bus, ROWS).replace(0, row, Change(by="bench"), row.made_at)
        log = SlotLog(bus)
        async with asyncio.timeout(LOOKED_WITHIN_S):
            for row in rows:
                while (await log.last(Scope(row.agent, row.owner), row.id)).ledger.seen is None:
                    await asyncio.sleep(0.5)
        begun_s = running.cpu_s()
        await asyncio.sleep(INTERVAL_S)
        cpu_pct = (running.cpu_s() - begun_s) / INTERVAL_S * 100 - idle["cpu_pct"]
        ledgers = [(await log.last(Scope(row.agent, row.owner), row.id)).ledger for row in rows]
        await bus.close()
    if any(one.runs for one in ledgers):
        raise RuntimeError("a watcher whose files never changed had something run")
    report("watch_1k_cpu_pct", cpu_pct, "% of a core", every_s=INTERVAL_S, files=FILES)


def row_of(owner: str, number: int) -> TimetableRow:
    """Return a watcher; its looks are spread over the minute."""
    now = datetime.now(UTC)
    return TimetableRow(
        id=uuid4().hex,
        owner=owner,
        agent="vigil",
        name=f"watcher {number}",
        work=CronWork(prompt="What is new?", watch=WatchedFiles(glob="*.md")),
        schedule=EverySchedule(interval_s=INTERVAL_S),
        jitter_s=INTERVAL_S,
        is_ordered=True,
        made_at=now,
        scheduled_at=now,
    )
