"""How fast memories are saved and found, through the HTTP API of a real `vigil up`.

1,000, 10,000 and 100,000 memories of one owner, each question asked by text, by vectors and by both
in turn, with and without a filter for a source that 10 of them have. The first recall is the first
one after a start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.memory_api import CONNECTIONS, PATIENCE_S, Client, clients
from bench.memory_filled import RARE, RARE_COUNT, fill, many
from bench.numbers import percentile, report
from bench.retrieval import MODES
from bench.system import System

SAVES: Final = 5_000
SIZES: Final = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
QUESTIONS: Final = 150
"""At each size, three ways and twice."""
WARM: Final = 5
AIMS: Final = {"recall_10k_p99_ms": "< 50", "recall_100k_p99_ms": "< 50"}


class Latency(NamedTuple):
    p50_ms: float
    p99_ms: float


async def measure(home: Path) -> None:
    """Report saves, a rebuild, and recall by size after another start."""
    questions: dict[str, list[str]] = {}
    async with system.running(home) as running:
        per_s = await measure_saves(running)
        report("saves_per_s", per_s, "1/s", connections=CONNECTIONS, saves=SAVES)
        for name, size in SIZES.items():
            if size == max(SIZES.values()):
                report("rebuild_10k_s", await measure_rebuild(running), "s")
            turns, questions[name] = many(size)
            await fill(running, _agent(name), turns)
    async with system.running(home) as running:
        async with clients(running, 1) as (client,):
            await client.until_found()
        for name, texts in questions.items():
            await _report_latency(running, name, texts[: QUESTIONS + WARM])


def _agent(name: str) -> str:
    return f"many-{name}"


async def _report_latency(running: System, name: str, texts: Sequence[str]) -> None:
    first_ms, found = await measure_latency(running, name, texts)
    report(f"first_recall_{name}_ms", first_ms, "ms")
    for (mode, is_filtered), latency in found.items():
        kind = ("" if mode == "hybrid" else f"_{mode}") + ("_source" if is_filtered else "")
        for what, value in latency._asdict().items():
            full = f"recall{kind}_{name}_{what}"
            aim = {"aim": AIMS[full]} if full in AIMS else {}
            report(full, value, "ms", **aim)
    slower = max(found["text", False].p50_ms, found["vector", False].p50_ms)
    aim = {"aim": "<= 2"} if name == "10k" else {}
    report(f"hybrid_vs_slower_{name}", found["hybrid", False].p50_ms / slower, "ratio", **aim)


async def measure_saves(running: System) -> float:
    """Save turns over several connections at once; return how many a second were acknowledged."""
    turns, _ = many(SAVES)
    waiting = iter(turns)
    async with clients(running, CONNECTIONS) as some:

        async def save(client: Client) -> None:
            for turn in waiting:
                await client.save("saving", turn)

        begun_at = time.perf_counter()
        await asyncio.gather(*map(save, some))
        took_s = time.perf_counter() - begun_at
        await some[0].until_found()
    return len(turns) / took_s


async def measure_latency(
    running: System, name: str, texts: Sequence[str]
) -> tuple[float, dict[tuple[str, bool], Latency]]:
    """Return the milliseconds of the first recall, and the latency by mode, and whether a source
    was asked for."""
    agent = _agent(name)
    async with clients(running, 1) as (client,):
        begun_at = time.perf_counter()
        await client.recall(agent, texts[0], "hybrid", 10)
        first_ms = (time.perf_counter() - begun_at) * 1000
        for text in texts[1:WARM]:
            await client.recall(agent, text, "hybrid", 10)
        found: dict[tuple[str, bool], Latency] = {}
        for source in ("", RARE):
            for mode, times in (await _times(client, agent, texts[WARM:], source)).items():
                found[mode, bool(source)] = Latency(percentile(times, 50), percentile(times, 99))
    return first_ms, found


async def _times(
    client: Client, agent: str, texts: Sequence[str], source: str
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for text in texts:
        for mode in MODES:
            begun_at = time.perf_counter()
            ids = await client.recall(agent, text, mode, 10, source)
            times[mode].append((time.perf_counter() - begun_at) * 1000)
            if source and mode != "text" and len(ids) != RARE_COUNT:
                raise RuntimeError(f"a rare source gave {len(ids)} of its {RARE_COUNT}")
    return times


async def measure_rebuild(running: System) -> float:
    """Make all indexes anew from the log; return the seconds for 10,000 records."""
    async with clients(running, 1) as (client,):
        records = int((await client.stats())["position"])
        begun_at = time.perf_counter()
        await client.call("POST", "/api/memories/rebuild", b"{}")
        await _until_rebuilt(client)
    return (time.perf_counter() - begun_at) * 10_000 / records


async def _until_rebuilt(client: Client) -> None:
    """Wait until a rebuild was seen to run, and then to have ended."""
    async with asyncio.timeout(PATIENCE_S):
        while (await client.stats())["rebuild"] is None:
            await asyncio.sleep(0.01)
    await client.until_found()
