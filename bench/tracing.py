"""What tracing costs: the load of 100 sessions, with and without a collector, in turns.

Two systems run side by side, one with tracing; the load goes to one and then to the other, in
alternating order, so that what else the machine does meets both. What is compared is the median
of the rounds' ratios: of messages a second, and of CPU time a message (services and broker), which
tells more, because it does not depend on who waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

from bench import system

ROUNDS = 6


async def measure(home: Path, *, sessions: int, messages: int) -> dict[str, float]:
    """Return cost_pct and cpu_pct of tracing, and spans' bytes a message."""
    for name in ("off", "on"):
        (home / name).mkdir()
    async with contextlib.AsyncExitStack() as stack:
        sink = await stack.enter_async_context(_sink())
        off = await stack.enter_async_context(system.running(home / "off"))
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"}
        on = await stack.enter_async_context(system.running(home / "on", **endpoint))
        for one in (off, on):
            await _load(one, sessions, 5, "warm")
        rates, cpus, total = [], [], 0
        for number in range(ROUNDS):
            found: dict[str, tuple[float, float]] = {}
            pair = [("off", off), ("on", on)]
            for name, one in pair if number % 2 else reversed(pair):
                found[name] = await _load(one, sessions, messages, f"r{number}")
            rates.append(found["on"][0] / found["off"][0])
            cpus.append(found["on"][1] / found["off"][1])
            total += sessions * (messages + 1)
    # The sink tells how much came once it has ended.
    return {
        "cost_pct": (1 - median(rates)) * 100,
        "cpu_pct": (median(cpus) - 1) * 100,
        "bytes_per_message": sink.taken / total,
    }


async def _load(
    where: system.System, sessions: int, messages: int, name: str
) -> tuple[float, float]:
    """Run the load as a process of its own -> (messages a second, CPU seconds a message)."""
    begun_s = where.cpu_s()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.load", where.url, where.token, str(sessions), str(messages),
        name, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the load failed")
    per_s: float = json.loads(output)["per_s"]
    return per_s, (where.cpu_s() - begun_s) / (sessions * (messages + 1))


class _Sink:
    port = 0
    taken = 0


@contextlib.asynccontextmanager
async def _sink() -> AsyncIterator[_Sink]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.sink",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    sink = _Sink()
    sink.port = int(await process.stdout.readline())
    try:
        yield sink
    finally:
        process.stdin.close()
        output, _ = await process.communicate()
        sink.taken = int(output)
