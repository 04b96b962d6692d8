"""What tracing costs: the load of 100 sessions, with and without a collector, in turns.

Two systems run side by side, one with tracing; the load goes to one and then to the other, in
alternating order, so that what else the machine does meets both. What is compared is the median
of the rounds' ratios: of messages a second, and of CPU time a message (services and broker), which
tells more, because it does not depend on who waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from bench import system
from bench.numbers import report_rounds
from bench.turns import MESSAGES, SESSIONS, WARM

MESSAGES_A_ROUND: Final = SESSIONS * (MESSAGES + 1)


async def measure(home: Path, rounds: int) -> None:
    """Report what tracing costs, in messages a second and in CPU, `rounds` times in each order."""
    for name in ("off", "on"):
        (home / name).mkdir()
    async with contextlib.AsyncExitStack() as stack:
        sink = await stack.enter_async_context(_sink())
        off = await stack.enter_async_context(system.running(home / "off"))
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"}
        on = await stack.enter_async_context(system.running(home / "on", **endpoint))
        for one in (off, on):
            await one.talk(SESSIONS, WARM, "warm")
        rates, cpus = [], []
        for number in range(2 * rounds):
            found: dict[str, tuple[float, float]] = {}
            pair = [("off", off), ("on", on)]
            for name, one in pair if number % 2 else reversed(pair):
                found[name] = await _load(one, f"r{number}")
            rates.append((1 - found["on"][0] / found["off"][0]) * 100)
            cpus.append((found["on"][1] / found["off"][1] - 1) * 100)
    # The sink tells how much came once it has ended.
    more = {"bytes_per_message": round(sink.taken / (len(rates) * MESSAGES_A_ROUND))}
    report_rounds("tracing_cost_pct", rates, "% of the messages a second", aim="< 15", **more)
    report_rounds("tracing_cpu_pct", cpus, "% more CPU a message", aim="< 15")


async def _load(where: system.System, name: str) -> tuple[float, float]:
    """Run the load -> (messages a second, CPU seconds a message)."""
    begun_s = where.cpu_s()
    per_s = (await where.talk(SESSIONS, MESSAGES, name))["per_s"]
    return per_s, (where.cpu_s() - begun_s) / MESSAGES_A_ROUND


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
