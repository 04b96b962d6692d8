"""The raw floor: what a message costs on the broker alone, with plain nats-py and one stream.

Three publishes with acknowledgement and two pulls per message, doing nothing in between: the
least that "accepted, committed, said" can take when each of the three is durable. It uses nothing
of Vigil's bus or layout, so that it stays what it is when they become faster, and ratios to it
stay comparable.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.numbers import percentile
from vigil.broker.process import Broker
from vigil.settings import credentials
from vigil.settings.sections import Nats
from vigil.topology import ADMIN

STREAM: Final = "FLOOR"
PAYLOAD: Final = b"x" * 300
"""About the size of a short message as an event."""
PULLED_AT_ONCE: Final = 500
PULL_S: Final = 600.0
"""How long a pull stays open; a measurement is over before."""


async def measure(
    home: Path, settings: Nats, *, sessions: int, messages: int, end: type[End] | None = None
) -> dict[str, float]:
    """Return per_s and p50_ms of `sessions` loops that pass on `messages` messages each.

    Args:
        end: how the three ends store; none: one record after the other, each acknowledged.
    """
    kind = end or End
    broker = Broker(settings, home=home)
    await broker.start()
    try:
        seed = credentials.load(home / "nkeys", ADMIN).decode()
        ends = [await kind.connect(broker.url, seed) for _ in range(3)]
        await _prepare(ends[0])
        result = await _run(ends, sessions, messages)
        for one in ends:
            await one.close()
        return result
    finally:
        await broker.stop()


class End:
    """One connection, with an inbox for all its answers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = client.new_inbox()
        self._ids = itertools.count()
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    @classmethod
    async def connect(cls, url: str, seed: str) -> Self:
        end = cls(await nats.connect(url, nkeys_seed_str=seed))
        await end._client.subscribe(f"{end._inbox}.*", cb=end._answered)
        return end

    async def _answered(self, msg: Msg) -> None:
        self._waiting.pop(msg.subject.rsplit(".", 1)[1]).set_result(msg.data)

    async def ask(self, subject: str, data: bytes) -> dict[str, Any]:
        """Publish, and return the answer: to a message stored, or of the JetStream API."""
        return await self.ask_with(subject, data, None)

    async def ask_with(
        self, subject: str, data: bytes, headers: dict[str, str] | None
    ) -> dict[str, Any]:
        """Do as `ask` does, with headers."""
        token = str(next(self._ids))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        await self._client.publish(subject, data, f"{self._inbox}.{token}", headers=headers)
        answer: dict[str, Any] = json.loads(await future)
        if "error" in answer:
            raise RuntimeError(f"{subject}: {answer['error']}")
        return answer

    async def pull(self, consumer: str, handle: Callable[[Msg], None]) -> None:
        """Hand on what the consumer has, acknowledged, and keep asking it for more."""
        inbox = self._client.new_inbox()
        request = json.dumps({"batch": PULLED_AT_ONCE, "expires": int(PULL_S * 1e9)}).encode()
        left = PULLED_AT_ONCE

        async def more() -> None:
            await self._client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{consumer}", request, inbox
            )

        async def arrived(msg: Msg) -> None:
            nonlocal left
            handle(msg)
            await self._client.publish(msg.reply, b"")
            left -= 1
            if left < PULLED_AT_ONCE // 2:
                left += PULLED_AT_ONCE
                await more()

        await self._client.subscribe(inbox, cb=arrived)
        await more()

    async def close(self) -> None:
        await self._client.close()


async def _prepare(end: End) -> None:
    config: dict[str, Any] = {
        "name": STREAM, "subjects": ["floor.>"], "storage": "file", "num_replicas": 1,
        "allow_atomic": True,
    }  # fmt: skip
    await end.ask(f"$JS.API.STREAM.CREATE.{STREAM}", json.dumps(config).encode())
    for stage in (1, 2):
        config = {
            "durable_name": f"stage{stage}",
            "ack_policy": "explicit",
            "filter_subject": f"floor.{stage}.*",
            "max_ack_pending": 100_000,
        }
        body = json.dumps({"stream_name": STREAM, "config": config}).encode()
        await end.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.stage{stage}", body)


async def _run(ends: list[End], sessions: int, messages: int) -> dict[str, float]:
    arrived: dict[str, asyncio.Event] = {str(i): asyncio.Event() for i in range(sessions)}
    tasks: set[asyncio.Task[None]] = set()

    def passing_on(end: End, stage: int) -> Callable[[Msg], None]:
        def handle(msg: Msg) -> None:
            task = asyncio.create_task(store(end, stage, msg.subject.rsplit(".", 1)[1]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return handle

    async def store(end: End, stage: int, name: str) -> None:
        await end.ask(f"floor.{stage}.{name}", PAYLOAD)
        if stage == 3:
            arrived[name].set()

    latencies: list[float] = []

    async def session(name: str) -> None:
        for _ in range(messages):
            begun_at = time.perf_counter()
            arrived[name].clear()
            await ends[0].ask(f"floor.1.{name}", PAYLOAD)
            await arrived[name].wait()
            latencies.append((time.perf_counter() - begun_at) * 1000)

    await ends[1].pull("stage1", passing_on(ends[1], 2))
    await ends[2].pull("stage2", passing_on(ends[2], 3))
    begun_at = time.perf_counter()
    await asyncio.gather(*(session(name) for name in arrived))
    elapsed_s = time.perf_counter() - begun_at
    return {
        "per_s": sessions * messages / elapsed_s,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
    }
