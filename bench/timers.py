"""How late timers are: from due to ``in.timer`` stored, by the broker's own clock.

The scheduler runs alone beside a real broker that syncs every write. Turns that ask for the
timers are stored beforehand, and must all be carried out before the first timer is due.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import uvloop

from tests.support.stack import Stack, running_stack
from tests.support.timers import (
    after,
    commit,
    fired_with_messages,
    now,
    schedule,
    session,
    unread_turns,
    until,
)
from vigil.bus.bus import Bus

SESSIONS = 100
IN_FLIGHT = 64
SETUP_PER_S = 1_000
"""Turns that are stored and carried out in a second on a slow machine, at least."""
TIMEOUT_S = 60.0


async def measure(stack: Stack, count: int, window_s: float) -> dict[str, float]:
    """Let `count` timers of 100 sessions come due over `window_s` seconds (0: all at once).

    Starts the scheduler if it doesn't run. Returns p50_ms, p99_ms, max_ms and min_ms of the
    lateness, early (how many), per_s (from the first due to the last stored) and idle_s
    (how long before the first one all turns were carried out; below 0, the run is void).
    """
    if "scheduler" not in stack.contexts:
        await stack.start("scheduler")
    admin = await stack.bus("admin")
    start = len(await fired_with_messages(admin))
    first_at = after(1.0 + count / SETUP_PER_S)
    await _commit_all(admin, first_at, count, window_s)

    async def carried_out() -> bool:
        return await unread_turns(admin) == 0

    await until(carried_out, timeout_s=TIMEOUT_S)
    idle_s = (first_at - now()).total_seconds()
    # Nothing else runs while it is measured.
    await asyncio.sleep(max(idle_s, 0) + window_s + 1.0)

    async def all_fired() -> bool:
        return len(await fired_with_messages(admin)) >= start + count

    await until(all_fired, timeout_s=TIMEOUT_S, first_s=0.5)
    found = (await fired_with_messages(admin))[start:]
    late_ms = sorted(
        (m.stored_at - e.payload.fire_at) / timedelta(milliseconds=1) for e, m in found
    )
    last_at = max(m.stored_at for _, m in found)
    return {
        "p50_ms": _percentile(late_ms, 50),
        "p99_ms": _percentile(late_ms, 99),
        "max_ms": late_ms[-1],
        "min_ms": late_ms[0],
        "early": float(sum(late < 0 for late in late_ms)),
        "per_s": len(found) / (last_at - first_at).total_seconds(),
        "idle_s": idle_s,
    }


async def _commit_all(admin: Bus, first_at: datetime, count: int, window_s: float) -> None:
    order = list(range(count))
    random.Random(1).shuffle(order)
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(n: int) -> None:
        key = session(f"bench-{n % SESSIONS}")
        fire_at = first_at + timedelta(seconds=window_s * n / count)
        async with slots:
            # The run's own ids: a broker may be measured more than once.
            await commit(admin, key, schedule(key, f"{first_at.timestamp()}-{n}", fire_at))

    await asyncio.gather(*(one(n) for n in order))


def _percentile(values: Sequence[float], percent: float) -> float:
    return values[min(int(len(values) * percent / 100), len(values) - 1)]


async def _main() -> None:
    for count, window_s in ((1_000, 10.0), (10_000, 10.0), (1_000, 0.0)):
        with tempfile.TemporaryDirectory() as home:
            async with running_stack(Path(home), services=("scheduler",)) as stack:
                figures = await measure(stack, count, window_s)
        rounded = {name: round(value, 2) for name, value in figures.items()}
        print(json.dumps({"timers": count, "window_s": window_s} | rounded))


if __name__ == "__main__":
    uvloop.run(_main())
