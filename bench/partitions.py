"""The log in partitions: what it gains on one machine, what it costs at rest, and in a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from bench import resting, system
from bench.groupings import Load, loaded
from bench.numbers import report, report_rounds
from bench.turns import MESSAGES, SESSIONS, WARM
from tests.support.cluster import running_cluster

COUNTS: Final = (1, 4, 16)
SEVERAL: Final = 4
IDLE_S: Final = 10.0


async def measure(home: Path, rounds: int) -> None:
    """Report `partitions_gain`, the throughput of four over that of one, and what each count costs
    when nothing happens."""
    found: dict[int, list[Load]] = {1: [], SEVERAL: []}
    for number in range(rounds):
        for count in list(found)[:: 1 if number % 2 else -1]:
            place = home / f"{number}-{count}"
            place.mkdir()
            async with _system(place, count, VIGIL_NATS__SYNC="always") as running:
                found[count].append(await loaded(running))
    pairs = list(zip(found[SEVERAL], found[1], strict=True))
    report_rounds("partitions_gain", [a.per_s / b.per_s for a, b in pairs], "ratio")
    report_rounds("partitions_cpu_ratio", [a.cpu_ms / b.cpu_ms for a, b in pairs], "ratio")
    for count in COUNTS:
        place = home / f"idle-{count}"
        place.mkdir()
        async with _system(place, count) as running:
            idle = await resting.idle(running)
        report(f"idle_partitions{count}_cpu_pct", idle["cpu_pct"], "% of a core", aim="< 1")
        report(f"idle_partitions{count}_mb", idle["rss_mb"], "MiB", aim="< 400")


class ClusterLoad(NamedTuple):
    load: Load
    nodes_ms: float
    """CPU of the three nodes for each message."""
    idle_pct: float
    """Of a core, of the three nodes when nothing happens."""


async def measure_cluster(home: Path, rounds: int) -> None:
    """Report each count of partitions in three nodes on this machine, each record on all three."""
    found: dict[int, list[ClusterLoad]] = {count: [] for count in COUNTS}
    for number in range(rounds):
        for count in COUNTS[:: 1 if number % 2 else -1]:
            found[count].append(await _in_cluster(home / f"{number}-{count}", count))
    for count, loads in found.items():
        name = f"cluster_partitions{count}"
        report_rounds(f"{name}_per_s", [one.load.per_s for one in loads], "1/s")
        report_rounds(f"{name}_services_ms", [one.load.cpu_ms for one in loads], "ms")
        report_rounds(f"{name}_nodes_ms", [one.nodes_ms for one in loads], "ms")
        report_rounds(f"{name}_idle_pct", [one.idle_pct for one in loads], "% of a core")


async def _in_cluster(home: Path, count: int) -> ClusterLoad:
    place = home / "home"
    place.mkdir(parents=True)
    async with running_cluster(home / "cluster", place, count) as cluster:
        outside = {"VIGIL_NATS__URL": cluster.url, "VIGIL_NATS__REPLICAS": "3"}
        async with _system(place, count, **outside) as running:
            await asyncio.sleep(resting.SETTLE_S)
            begun_s = nodes_cpu_s()
            await asyncio.sleep(IDLE_S)
            before_s = nodes_cpu_s()
            load = await loaded(running)
            nodes_ms = (nodes_cpu_s() - before_s) * 1000 / (SESSIONS * (WARM + MESSAGES + 2))
            return ClusterLoad(load, nodes_ms, (before_s - begun_s) / IDLE_S * 100)


def nodes_cpu_s() -> float:
    """Return what the brokers that this process started have taken so far, in seconds."""
    nodes = [one for one in psutil.Process().children() if one.name() == "nats-server"]
    return float(sum(sum(one.cpu_times()[:2]) for one in nodes))


def _system(
    home: Path, count: int, **settings: Any
) -> contextlib.AbstractAsyncContextManager[system.System]:
    return system.running(home, VIGIL_NATS__PARTITIONS=str(count), **settings)
