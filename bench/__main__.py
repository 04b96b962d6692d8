"""`make bench`: every figure in one run, one JSON object a line, most telling as ratios.

python -m bench [PART ...]        turns timers voiding tools signals tracing retrieval resting
                                  neighbours shares; all by default
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench import (
    attacks,
    floor,
    neighbours,
    resting,
    retrieval,
    shares,
    signals,
    system,
    timers,
    tools,
    tracing,
    voiding,
)
from bench.numbers import report
from tests.support.stack import running_stack
from vigil.observe import logs
from vigil.settings.sections import Nats

SESSIONS, MESSAGES = 100, 20
ALONE = 300
"""Messages of the single session."""
ROUNDS = 3


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
    """The floor, and the whole way over HTTP and WebSocket, with and without `sync: always`.

    In rounds, so that a ratio compares what ran side by side: on a machine with neighbours the
    floor alone was seen to double from one minute to the next. Each figure is the median round.
    """
    rounds = [await _round(home / str(number)) for number in range(ROUNDS)]

    def median(value: Callable[[Round], float]) -> float:
        return statistics.median(value(one) for one in rounds)

    report("floor_per_s", median(lambda r: r.floor["per_s"]), "1/s")
    report("floor1_p50_ms", median(lambda r: r.floor_alone["p50_ms"]), "ms")
    report("turns_per_s", median(lambda r: r.turns["per_s"]), "1/s",
           sessions=SESSIONS, messages=MESSAGES, rounds=ROUNDS)  # fmt: skip
    report("turn_p50_ms", median(lambda r: r.turns["p50_ms"]), "ms")
    report("turn_p99_ms", median(lambda r: r.turns["p99_ms"]), "ms")
    report("turn1_p50_ms", median(lambda r: r.alone["p50_ms"]), "ms")
    report("turn1_vs_floor1", median(lambda r: r.alone["p50_ms"] / r.floor_alone["p50_ms"]),
           "ratio", aim="<= 5")  # fmt: skip
    report("turns_vs_floor", median(lambda r: r.turns["per_s"] / r.floor["per_s"]),
           "ratio", aim=">= 0.5")  # fmt: skip
    report("turns_default_per_s", median(lambda r: r.default["per_s"]), "1/s")
    report("always_vs_default", median(lambda r: r.turns["per_s"] / r.default["per_s"]),
           "ratio", aim=">= 0.6")  # fmt: skip


class Round(NamedTuple):
    """What one round found: the floor, and the system, with many sessions and with one."""

    floor: dict[str, float]
    floor_alone: dict[str, float]
    turns: dict[str, float]
    alone: dict[str, float]
    default: dict[str, float]
    """The system without `sync: always`."""


async def _round(home: Path) -> Round:
    nats = Nats(sync="always")
    base = await floor.measure(home / "floor", nats, sessions=SESSIONS, messages=MESSAGES)
    base_alone = await floor.measure(home / "floor-1", nats, sessions=1, messages=ALONE)
    (home / "always").mkdir()
    async with system.running(home / "always", VIGIL_NATS__SYNC="always") as running:
        await talk(running, SESSIONS, 5, "warm")
        turns = await talk(running, SESSIONS, MESSAGES, "many")
        alone = await talk(running, 1, ALONE, "alone")
    (home / "default").mkdir()
    async with system.running(home / "default", VIGIL_NATS__SYNC="default") as running:
        await talk(running, SESSIONS, 5, "warm")
        default = await talk(running, SESSIONS, MESSAGES, "many")
    return Round(base, base_alone, turns, alone, default)


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


async def measure_tools(home: Path) -> None:
    """What a call costs beside its tool, fifty workers at once, a start in the sandbox."""
    found = await tools.overhead(home / "calls")
    report("tool_overhead_p50_ms", found.p50_ms, "ms", calls=tools.LOOPS * tools.CALLS)
    report("tool_overhead_p99_ms", found.p99_ms, "ms")
    report("tool_overhead_vs_floor1", found.p50_ms / found.floor_p50_ms, "ratio")
    report("workers50_s", await tools.workers(home / "workers"), "s", workers=tools.WORKERS)
    started = await tools.sandbox_start()
    report("sandbox_start_ms", started.p50_ms, "ms", sandbox=started.kind,
           bare_ms=round(started.bare_p50_ms, 3))  # fmt: skip


async def measure_resting(home: Path) -> None:
    """Idle cost of everything in one process, and of 1,000 sessions."""
    async with system.running(home) as running:
        found = await resting.idle(running)
        report("idle_cpu_pct", found["cpu_pct"], "% of a core", aim="< 1")
        report("idle_rss_mb", found["rss_mb"], "MiB", aim="< 400")
        more = await resting.per_1000_sessions(running)
        report("open_1000_sessions_mb", more["open_mb"], "MiB")
        report("rest_1000_sessions_mb", more["at_rest_mb"], "MiB")


async def measure_signals(home: Path) -> None:
    """Signals under the turn load, and one gateway with 200 readers of them."""
    async with system.running(home) as running:
        await talk(running, SESSIONS, MESSAGES, "signals")
        found = await signals.lag(running)
        report("signal_lag_p50_ms", found["p50_ms"], "ms", signals=int(found["count"]))
        report("signal_lag_p99_ms", found["p99_ms"], "ms", aim="< 500")
        handed_out = await signals.fan_out(running)
        report("sse_fanout_per_s", handed_out["per_s"], "1/s", readers=signals.READERS)


async def measure_tracing(home: Path) -> None:
    """The load of 100 sessions with and without spans that go to a collector."""
    found = await tracing.measure(home, sessions=SESSIONS, messages=MESSAGES)
    more = {"bytes_per_message": round(found["bytes_per_message"]), "rounds": tracing.ROUNDS}
    report("tracing_cost_pct", found["cost_pct"], "% of the messages a second", aim="< 15", **more)
    report("tracing_cpu_pct", found["cpu_pct"], "% more CPU a message", aim="< 15")


async def measure_retrieval(home: Path) -> None:
    """Quality on held-out conversations, latency by size, saves and rebuild, by HTTP."""
    async with system.running(home) as running:
        found = await retrieval.measure_quality(running)
        more = {"questions": found.questions, "turns": found.turns}
        for k in retrieval.KS:
            for mode, name in (("text", "fts"), ("vector", "vector"), ("hybrid", "hybrid")):
                report(f"recall{k}_{name}", found.recall[mode][k], "% of the evidence", **more)
        report("saves_per_s", found.saves_per_s, "1/s", connections=retrieval.CONNECTIONS)
        await _report_latency(running, 1_000, "1k", questions=150)
        await _report_latency(running, 10_000, "10k", questions=200)
        report("rebuild_10k_s", await retrieval.measure_rebuild(running), "s")
        await _report_latency(running, 100_000, "100k", questions=100)


async def _report_latency(running: system.System, size: int, name: str, *, questions: int) -> None:
    found = await retrieval.measure_latency(running, size, questions)
    aims = {"recall_10k_p99_ms": "< 50"}
    for (mode, is_filtered), latency in found.items():
        kind = ("" if mode == "hybrid" else f"_{mode}") + ("_source" if is_filtered else "")
        for what, value in latency._asdict().items():
            full = f"recall{kind}_{name}_{what}"
            aim = {"aim": aims[full]} if full in aims else {}
            report(full, value, "ms", **aim)
    slower = max(found["text", False].p50_ms, found["vector", False].p50_ms)
    aim = {"aim": "<= 2"} if name == "10k" else {}
    report(f"hybrid_vs_slower_{name}", found["hybrid", False].p50_ms / slower, "ratio", **aim)


async def measure_neighbours(home: Path) -> None:
    """A quiet person beside one who attacks, with the limits that the system ships with."""
    settings = {**neighbours.SETTINGS, **attacks.SETTINGS}
    async with system.running(home, files=neighbours.FILES, **settings) as running:
        await neighbours.measure(running)


PARTS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "turns": measure_turns,
    "timers": measure_timers,
    "voiding": measure_voiding,
    "tools": measure_tools,
    "signals": measure_signals,
    "tracing": measure_tracing,
    "retrieval": measure_retrieval,
    "resting": measure_resting,
    "neighbours": measure_neighbours,
    "shares": shares.measure,
}


async def main(names: list[str]) -> None:
    logs.configure(level=40)
    for name in names or list(PARTS):
        with tempfile.TemporaryDirectory() as home:
            await PARTS[name](Path(home))


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(PARTS)
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    uvloop.run(main(sys.argv[1:]))
