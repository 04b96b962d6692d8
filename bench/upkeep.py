"""What a memory of 300,000 costs at rest, and what its passes do, by cause and part.

The passes are asked for here and not by the scheduler, so that each has a figure of its own; what
they come to is added up by how often the scheduler asks for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from bench import system
from bench.memory_api import bus_of
from bench.memory_filled import fill, many
from bench.numbers import report, rounded
from bench.system import System
from vigil.contracts import MemoriesAssociated, encode
from vigil.memory.client import MemoryClient
from vigil.memory.operations.maintain import Maintain, Maintained
from vigil.settings.memory import MemorySection
from vigil.subjects import Scope
from vigil.topology import STREAMS

SIZE: Final = 300_000
BACKLOG: Final = 100_000
SETTLE_S: Final = 10.0
_MEMORIES: Final = next(one for one in STREAMS if one.name == "MEMORIES")
FORGOTTEN_S: Final = _MEMORIES.duplicate_window_s + SETTLE_S
"""Until the broker has forgotten the ids of what was written: with 300,000 of them it takes 1.0 %
of a core until then, and 0.4 % afterwards (2026-11-26)."""
WATCH_S: Final = 30.0
PASSES: Final = 3
"""Over a backlog."""
SCOPE: Final = Scope("many", "me")
NEVER: Final = {
    "VIGIL_MEMORY__ASSOCIATION_EVERY_S": "86400",
    "VIGIL_MEMORY__MAINTENANCE_EVERY_S": "86400",
}
What = Literal["maintenance", "association"]
Costs = dict[str, float]
"""CPU seconds by part."""


async def measure(home: Path) -> None:
    """Report the cost of an empty memory, of a full one, and of each pass over it."""
    async with system.running(home, **NEVER) as running:
        empty = await _at_rest(running, "empty")
        turns, _ = many(SIZE)
        await fill(running, SCOPE.agent, turns)
        await _backlog(running)
        await _look_through(running)
        await asyncio.sleep(FORGOTTEN_S)
        full = await _at_rest(running, f"{SIZE // 1000}k")
        every_s: dict[What, float] = {
            "association": MemorySection().association_every_s,
            "maintenance": MemorySection().maintenance_every_s,
        }
        more_pct = full - empty
        for what, seconds in every_s.items():
            await _pass(running, what)  # what there is to do is done
            costs, _, took_s = await _pass(running, what)
            report(f"{what}_idle_s", sum(costs.values()), "s of CPU", took_s=rounded(took_s),
                   every_s=seconds, **_rounded(costs))  # fmt: skip
            more_pct += 100 * sum(costs.values()) / seconds
        report("idle_300k_more_pct", more_pct, "% of a core", aim="< 0.3")


async def _at_rest(running: System, name: str) -> float:
    await asyncio.sleep(SETTLE_S)
    async with _costs(running) as told:
        await asyncio.sleep(WATCH_S)
    shares = {part: 100 * cost / WATCH_S for part, cost in told().items()}
    pct = sum(shares.values())
    report(f"idle_memory_{name}_pct", pct, "% of a core", **_rounded(shares))
    return pct


async def _backlog(running: System) -> None:
    """Report what passes over all of it do, and what that comes to for 100,000."""
    done, costs_s, took_s = 0, 0.0, 0.0
    for _ in range(PASSES):
        costs, made, took = await _pass(running, "association")
        done, costs_s, took_s = done + made.associated, costs_s + sum(costs.values()), took_s + took
    looked = _looked_at(running)
    report("association_backlog_looked", looked / PASSES, "memories a pass",
           associated=done / PASSES, took_s=rounded(took_s / PASSES))  # fmt: skip
    report("association_100k_cpu_s", costs_s * BACKLOG / looked, "s of CPU", of=SIZE)


async def _pass(running: System, what: What) -> tuple[Costs, Maintained, float]:
    """Run a pass -> its costs by part, what it did, how long it took."""
    async with bus_of(running, "scheduler") as bus, _costs(running) as told:
        begun_at = time.perf_counter()
        done = await MemoryClient(bus).maintain_all(Maintain(what=what), timeout_s=60.0)
        took_s = time.perf_counter() - begun_at
    return told(), done, took_s


def _looked_at(running: System) -> int:
    """Return how many memories association has looked at, by the database alone."""
    path = running.home / "memory" / "0" / "memory.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found: int = db.execute(
            "SELECT count(*) FROM memories JOIN scopes USING (scope) WHERE num <= looked_through"
        ).fetchone()[0]
    return found


async def _look_through(running: System) -> None:
    """Let association have looked at all: what there is to do at rest is not the backlog."""
    now = datetime.now(UTC)
    record = MemoriesAssociated(
        id="bench-looked", agent=SCOPE.agent, owner=SCOPE.owner, at=now, by="maintenance",
        edges=(), through=10 * SIZE,
    )  # fmt: skip
    async with bus_of(running, "memory") as bus:
        await bus.publish(SCOPE.record("associate"), encode(record), msg_id=record.id)


@asynccontextmanager
async def _costs(running: System) -> AsyncIterator[Callable[[], Costs]]:
    """Yield what returns the CPU time of the block, once that is over."""
    before = running.cpu_s_by_part()
    found: Costs = {}
    yield lambda: found
    for part, after in running.cpu_s_by_part().items():
        found[part] = after - before[part]


def _rounded(costs: Costs) -> Costs:
    return {part: rounded(cost) for part, cost in costs.items()}
