"""Signals: how long after their record they are stored, and how many a gateway hands out.

Both ends of the lag are instants of the broker's own clock. The readers of the fan-out are a
process of their own:

    python -m bench.signals URL TOKEN READERS EVENTS

says ``ready`` once all are connected, and prints one JSON object when each has every event.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from typing import cast
from urllib.parse import urlsplit

import uvloop

from bench.numbers import percentile
from bench.system import System
from vigil.bus.batches import BATCH_MAX, BatchEntry, append, last_sequence
from vigil.bus.bus import Bus
from vigil.contracts import Signal, SignalSource, decode_signal, encode
from vigil.subjects import SIGNALS_ALL, SessionKey

READERS = 200
EVENTS = 3_000
BATCH = 300
"""About what a tenth of a second of the turn load makes."""
SETTLE_S = 1.0
PATIENCE_S = 120.0


async def lag(system: System) -> dict[str, float]:
    """Return p50_ms and p99_ms, and count, of the signals of everything stored in SESSIONS."""
    bus = await system.admin()
    try:
        await asyncio.sleep(SETTLE_S)
        logs = (await bus.layout()).logs
        records = [one for log in logs for one in await bus.read(log, ["session.>"])]
        signals = await bus.read("SIGNALS", [SIGNALS_ALL])
    finally:
        await bus.close()
    stored_at = {(message.stream, message.seq): message.stored_at for message in records}
    sources = [decode_signal(message.data).source for message in signals]
    lag_ms = [
        (message.stored_at - stored_at[one.stream, one.seq]).total_seconds() * 1000
        for message, one in zip(signals, sources, strict=True)
    ]
    return {
        "p50_ms": percentile(lag_ms, 50),
        "p99_ms": percentile(lag_ms, 99),
        "count": float(len(signals)),
    }


async def fan_out(system: System) -> dict[str, float]:
    """Return per_s: events that arrived at 200 readers, each counted for each of them."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.signals", system.url, system.token, str(READERS),
        str(EVENTS), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    bus = await system.admin()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await process.stdout.readline()
            begun_at = time.perf_counter()
            await _tell(bus, EVENTS)
            told_s = time.perf_counter() - begun_at
            found: dict[str, float] = json.loads(await process.stdout.readline())
    finally:
        await bus.close()
        await process.wait()
    assert found["events"] == READERS * EVENTS
    return {"per_s": found["events"] / found["elapsed_s"], "told_per_s": EVENTS / told_s}


async def _tell(bus: Bus, count: int) -> None:
    """Store signals in batches, as the projector does."""
    key = SessionKey("me", "vigil", "fan-out")
    entries = [
        BatchEntry(key.signal("turn.committed"), encode(_signal(key, number)), {})
        for number in range(count)
    ]
    last = await last_sequence(bus, "SIGNALS")
    size = min(BATCH, BATCH_MAX)
    for begin in range(0, count, size):
        part = entries[begin : begin + size]
        last = await append(bus, part, expect=last, batch_id=f"bench-{begin}")


def _signal(key: SessionKey, number: int) -> Signal:
    return Signal(
        id=f"SESSIONS-{number}-turn.committed",
        kind="turn.committed",
        agent=key.agent,
        owner=key.user,
        at=datetime.now(UTC),
        source=SignalSource(stream="SESSIONS", seq=number),
        session_key=str(key),
        caused_by="e1",
        subject="e1",
        text=f"Turn {number} ended with an answer, because of a message of the person",
        data={"turn": number, "outcome": "answered", "event": "user_message"},
    )


class Reader(asyncio.Protocol):
    """An open stream that counts events, as lean as a client can be."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._tail = b""
        self.events = 0
        self.connected = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._head)

    def data_received(self, data: bytes) -> None:
        if not self.connected.done() and b"retry:" in data:
            self.connected.set_result(None)
        # A mark may come in two pieces.
        found = self._tail + data
        self.events += found.count(b"\ndata: ")
        self._tail = found[-6:]


async def _read(url: str, token: str, readers: int, events: int) -> None:
    where = urlsplit(url)
    head = (
        f"GET /api/signals HTTP/1.1\r\nhost: {where.netloc}\r\n"
        f"authorization: Bearer {token}\r\n\r\n"
    ).encode()
    loop = asyncio.get_running_loop()
    streams: list[Reader] = []
    for _ in range(readers):
        _, reader = await loop.create_connection(
            lambda: Reader(head), where.hostname or "", where.port or 80
        )
        await reader.connected
        streams.append(reader)
    print("ready", flush=True)
    while not any(reader.events for reader in streams):
        await asyncio.sleep(0.001)
    begun_at = time.perf_counter()
    while any(reader.events < events for reader in streams):
        await asyncio.sleep(0.001)
    elapsed_s = time.perf_counter() - begun_at
    total = sum(reader.events for reader in streams)
    print(json.dumps({"events": total, "elapsed_s": elapsed_s}), flush=True)


if __name__ == "__main__":
    _, address, secret, people, each = sys.argv
    uvloop.run(_read(address, secret, int(people), int(each)))
