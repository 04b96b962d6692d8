"""`make bench`: every figure in one run, one JSON object a line, most telling as ratios.

python -m bench [PART ...]        turns timers voiding resting; all by default
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import uvloop

from bench import floor, resting, system, timers, voiding
from bench.numbers import report
from tests.support.stack import running_stack
from vigil import telemetry
from vigil.config import Nats

SESSIONS, MESSAGES = 100, 20
ALONE = 300
"""Messages of the single session."""
Sync = Literal["always", "default"]


async def talk(where: system.System, sessions: int, messages: int, name: str) -> dict[str, float]:
    """Run the load as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.load", where.url, where.token, str(sessions), str(messages),
        name, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the load failed")
    result: dict[str, float] = json.loads(output)
    return result


async def measure_turns(home: Path) -> None:
    """The floor, and the whole way over HTTP and WebSocket, with and without `sync: always`."""
    many: dict[Sync, dict[str, float]] = {}
    alone: dict[str, float] = {}
    base: dict[str, float] = {}
    base_alone: dict[str, float] = {}
    syncs: tuple[Sync, ...] = ("always", "default")
    for sync in syncs:
        nats = Nats(sync=sync)
        found = await floor.measure(
            home / f"floor-{sync}", nats, sessions=SESSIONS, messages=MESSAGES
        )
        if sync == "always":
            base = found
            base_alone = await floor.measure(home / "floor-1", nats, sessions=1, messages=ALONE)
        folder = home / sync
        folder.mkdir()
        async with system.running(folder, VIGIL_NATS__SYNC=sync) as running:
            await talk(running, SESSIONS, 5, "warm")
            many[sync] = await talk(running, SESSIONS, MESSAGES, "many")
            if sync == "always":
                alone = await talk(running, 1, ALONE, "alone")
    always, default = many["always"], many["default"]
    report("floor_per_s", base["per_s"], "1/s", p50_ms=round(base["p50_ms"], 2))
    report("floor1_p50_ms", base_alone["p50_ms"], "ms")
    report("turns_per_s", always["per_s"], "1/s", sessions=SESSIONS, messages=MESSAGES)
    report("turn_p50_ms", always["p50_ms"], "ms")
    report("turn_p99_ms", always["p99_ms"], "ms")
    report("turn1_p50_ms", alone["p50_ms"], "ms")
    report("turn1_vs_floor1", alone["p50_ms"] / base_alone["p50_ms"], "ratio", aim="<= 5")
    report("turns_vs_floor", always["per_s"] / base["per_s"], "ratio", aim=">= 0.5")
    report("turns_default_per_s", default["per_s"], "1/s")
    report("always_vs_default", always["per_s"] / default["per_s"], "ratio", aim=">= 0.6")


async def measure_timers(home: Path) -> None:
    """Lateness of timers: from due to `in.timer` stored, the scheduler alone."""
    runs = (("1k", 1_000, 10.0), ("10k", 10_000, 10.0), ("burst", 1_000, 0.0))
    for name, count, window_s in runs:
        folder = home / name
        folder.mkdir()
        async with running_stack(folder, services=("scheduler",)) as stack:
            found = await timers.measure(stack, count, window_s)
        if name == "burst":
            report("timer_burst_per_s", found["per_s"], "1/s", aim=">= 500", early=found["early"])
            continue
        if name == "1k":
            report("timer_1k_p50_ms", found["p50_ms"], "ms", aim="< 10")
        aim = "< 50" if name == "1k" else "< 300"
        report(f"timer_{name}_p99_ms", found["p99_ms"], "ms", aim=aim, early=found["early"])


async def measure_voiding(home: Path) -> None:
    """Acceptance of a user message -> follow-ups void."""
    async with system.running(home) as running:
        found = await voiding.measure(running)
    report("void_p50_ms", found["p50_ms"], "ms")
    report("void_p99_ms", found["p99_ms"], "ms", aim="< 100")


async def measure_resting(home: Path) -> None:
    """Idle cost of everything in one process, and of 1,000 sessions."""
    async with system.running(home) as running:
        found = await resting.idle(running)
        report("idle_cpu_pct", found["cpu_pct"], "% of a core", aim="< 1")
        report("idle_rss_mb", found["rss_mb"], "MiB", aim="< 400")
        more = await resting.per_1000_sessions(running)
        report("open_1000_sessions_mb", more["open_mb"], "MiB")
        report("rest_1000_sessions_mb", more["at_rest_mb"], "MiB")


PARTS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "turns": measure_turns,
    "timers": measure_timers,
    "voiding": measure_voiding,
    "resting": measure_resting,
}


async def main(names: list[str]) -> None:
    telemetry.configure(level=40)
    for name in names or list(PARTS):
        with tempfile.TemporaryDirectory() as home:
            await PARTS[name](Path(home))


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(PARTS)
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    uvloop.run(main(sys.argv[1:]))
