"""What more replicas of each service cost and gain, with three brokers, all on this machine.

The work is the same for each number of replicas: so many sessions, spread over the gateways. On one
machine the replicas share its cores, so what they gain is hidden; what each adds to a message, and
what all take when nothing happens, is the same as on many.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from bench import system
from bench.numbers import report_rounds
from bench.partitions import SEVERAL, nodes_cpu_s
from bench.turns import MESSAGES, SESSIONS, WARM
from tests.support.cluster import running_cluster
from vigil.broker.ports import free_port

SIZES: Final = (1, 2, 4)
SERVICES: Final = ("gateway", "cortex", "memory", "scheduler", "executor", "delivery")
READY_S: Final = 300.0
SETTLE_S: Final = 5.0
IDLE_S: Final = 10.0


class Found(NamedTuple):
    """Of one number of replicas."""

    per_s: float
    p50_ms: float
    p99_ms: float
    services_ms: float
    """CPU of all services for each message."""
    nodes_ms: float
    """CPU of the three brokers for each message."""
    services_idle_pct: float
    """Of a core, when nothing happens."""
    nodes_idle_pct: float
    services_mb: float
    start_cpu_s: float
    """Of all services, until each is ready."""


async def measure(home: Path, rounds: int, sizes: Sequence[int] = SIZES) -> None:
    """Report each number of replicas."""
    found: dict[int, list[Found]] = {size: [] for size in sizes}
    for number in range(rounds):
        for size in sizes[:: 1 if number % 2 == 0 else -1]:
            found[size].append(await _round(home / f"{number}-{size}", size))
    units = ("1/s", "ms", "ms", "ms", "ms", "% of a core", "% of a core", "MiB", "s")
    for size, each in found.items():
        for name, unit in zip(Found._fields, units, strict=True):
            values = [getattr(one, name) for one in each]
            report_rounds(f"replicas_{size}_{name}", values, unit, partitions=SEVERAL)


async def _round(home: Path, size: int) -> Found:
    place = home / "home"
    place.mkdir(parents=True)
    async with (
        running_cluster(home / "cluster", place, SEVERAL) as cluster,
        _deployed(place, cluster.url, size) as (urls, processes),
    ):
        start_cpu_s = _cpu_s(processes)
        (token,) = await system.tokens_of(place, cluster.url, ["me"])
        await asyncio.sleep(SETTLE_S)
        idle = await _cpu_while(asyncio.sleep(IDLE_S), processes)
        await _talk(urls, token, WARM, "warm")
        loads: list[dict[str, float]] = []
        busy = await _cpu_while(_talk(urls, token, MESSAGES, "many", loads), processes)
        messages = len(urls) * (SESSIONS // len(urls)) * (MESSAGES + 1)  # one opens each
        return Found(
            per_s=sum(one["per_s"] for one in loads),
            p50_ms=max(one["p50_ms"] for one in loads),
            p99_ms=max(one["p99_ms"] for one in loads),
            services_ms=busy[0] * 1000 / messages,
            nodes_ms=busy[1] * 1000 / messages,
            services_idle_pct=idle[0] / IDLE_S * 100,
            nodes_idle_pct=idle[1] / IDLE_S * 100,
            services_mb=sum(one.memory_info().rss for one in processes) / 2**20,
            start_cpu_s=start_cpu_s,
        )


async def _talk(
    urls: Sequence[str],
    token: str,
    messages: int,
    name: str,
    found: list[dict[str, float]] | None = None,
) -> None:
    """Let the sessions talk, each with its gateway, and all at once."""
    loads = await asyncio.gather(
        *(
            system.talk(url, token, SESSIONS // len(urls), messages, f"{name}-{number}")
            for number, url in enumerate(urls)
        )
    )
    if found is not None:
        found += loads


async def _cpu_while(
    work: Coroutine[Any, Any, None], processes: Sequence[psutil.Process]
) -> tuple[float, float]:
    """Return what services and brokers take while a work lasts, in seconds."""
    services_s, nodes_s = _cpu_s(processes), nodes_cpu_s()
    await work
    return _cpu_s(processes) - services_s, nodes_cpu_s() - nodes_s


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return float(sum(sum(one.cpu_times()[:2]) for one in processes))


@contextlib.asynccontextmanager
async def _deployed(
    home: Path, nats_url: str, size: int
) -> AsyncIterator[tuple[list[str], list[psutil.Process]]]:
    """Run so many of each service, each in a process of its own; yield the gateways' addresses."""
    environment = system.environment_of(home) | {"NATS_URL": nats_url, "VIGIL_NATS__REPLICAS": "3"}
    environment["VIGIL_NATS__PARTITIONS"] = str(SEVERAL)
    urls: list[str] = []
    async with contextlib.AsyncExitStack() as stack:
        logs, started = [], []
        for number in range(size):
            for name in SERVICES:
                logs.append(home / f"{name}-{number}.log")
                port = free_port() if name == "gateway" else 0
                if port:
                    urls.append(f"http://127.0.0.1:{port}")
                log = stack.enter_context(logs[-1].open("wb"))
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "vigil.cli", "serve", name,
                    env=environment | {"VIGIL_PORT": str(port)}, stdout=log, stderr=log,
                )  # fmt: skip
                stack.push_async_callback(system.ended, process)
                started.append(process)
        async with asyncio.timeout(READY_S):
            while not all(b"service.ready" in one.read_bytes() for one in logs):
                if any(one.returncode is not None for one in started):
                    raise RuntimeError("\n".join(one.read_text()[-2000:] for one in logs))
                await asyncio.sleep(0.1)
        yield urls, [psutil.Process(one.pid) for one in started]
