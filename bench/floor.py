"""The raw floor: what a message costs on the broker alone, with the same client.

Three publishes with acknowledgement and two pulls per message, doing nothing in between: the
least that "accepted, committed, said" can take when each of the three is durable.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.numbers import percentile
from vigil.broker.process import Broker
from vigil.bus.bus import Bus, Puller
from vigil.settings.sections import Nats
from vigil.topology import Consumer

ONE = Consumer(stream="FLOOR", name="one", filters=("floor.1.*",), ack_wait_s=30)
TWO = Consumer(stream="FLOOR", name="two", filters=("floor.2.*",), ack_wait_s=30)
PAYLOAD = b"x" * 300
"""About the size of a short message as an event."""


async def measure(home: Path, nats: Nats, *, sessions: int, messages: int) -> dict[str, float]:
    """Return per_s and p50_ms of `sessions` loops that pass on `messages` messages each."""
    broker = Broker(nats, home=home)
    await broker.start()
    try:
        buses = [await broker.admin() for _ in range(3)]
        await _prepare(buses[0])
        result = await _run(buses, sessions, messages)
        for bus in buses:
            await bus.close()
        return result
    finally:
        await broker.stop()


async def _prepare(bus: Bus) -> None:
    config = {"name": "FLOOR", "subjects": ["floor.>"], "storage": "file", "num_replicas": 1}
    await bus.api("STREAM.CREATE.FLOOR", config)
    for consumer in (ONE, TWO):
        config = {
            "durable_name": consumer.name,
            "ack_policy": "explicit",
            "filter_subject": consumer.filters[0],
            "max_ack_pending": 100_000,
        }
        await bus.api(
            f"CONSUMER.DURABLE.CREATE.FLOOR.{consumer.name}",
            {"stream_name": "FLOOR", "config": config},
        )


async def _run(buses: list[Bus], sessions: int, messages: int) -> dict[str, float]:
    arrived: dict[str, asyncio.Event] = {str(i): asyncio.Event() for i in range(sessions)}
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(bus: Bus, puller: Puller, stage: int) -> None:
        async for message in puller:
            name = message.subject.rsplit(".", 1)[1]
            task = asyncio.create_task(store(bus, stage, name))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await bus.ack(message)

    async def store(bus: Bus, stage: int, name: str) -> None:
        await bus.publish(f"floor.{stage}.{name}", PAYLOAD)
        if stage == 3:
            arrived[name].set()

    latencies: list[float] = []

    async def session(name: str) -> None:
        for _ in range(messages):
            begun_at = time.perf_counter()
            arrived[name].clear()
            await buses[0].publish(f"floor.1.{name}", PAYLOAD)
            await arrived[name].wait()
            latencies.append((time.perf_counter() - begun_at) * 1000)

    pullers = [await buses[1].pull(ONE), await buses[2].pull(TWO)]
    passing = [
        asyncio.create_task(pass_on(buses[1], pullers[0], 2)),
        asyncio.create_task(pass_on(buses[2], pullers[1], 3)),
    ]
    begun_at = time.perf_counter()
    await asyncio.gather(*(session(name) for name in arrived))
    elapsed_s = time.perf_counter() - begun_at
    for task in passing:
        task.cancel()
    for puller in pullers:
        await puller.close()
    return {
        "per_s": sessions * messages / elapsed_s,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
    }
