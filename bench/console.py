"""The console: how soon a page's first byte comes, with nothing stored and with much, and live.

First bytes are of a gateway and a memory service in this process, over HTTP, by a browser's cookie.
What is stored is written as the services write it; no cortex is there, which would answer ten
thousand messages.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx2

from bench.numbers import percentile, report
from tests.support.console import signed_in
from tests.support.remembering import running_memories
from vigil.bus.bus import Bus
from vigil.contracts import Said, Signal, SignalSource, UserMessage, UserMessagePayload, encode
from vigil.subjects import SessionKey

LONG: Final = SessionKey("me", "vigil", "long")
RECORDS: Final = 100_000
SESSIONS: Final = 10_000
LOOKS: Final = 20
CHANGES: Final = 100
AT_ONCE: Final = 500


async def measure(home: Path) -> None:
    """Today and a timeline, idle and beside much; and how soon an open page hears of a change."""
    async with running_memories(home) as gate:
        client = (await signed_in(gate, LONG.user)).client
        idle_ms = await first_byte_ms(client, "/console")
        await _store(gate.admin)
        today_ms = await first_byte_ms(client, "/console")
        more = round(today_ms - idle_ms, 1)
        report("console_today_ms", today_ms, "ms", aim="<= 150 over the idle one", over=more)
        path = f"/console/conversations/{LONG}/timeline?after={RECORDS // 2}"
        report("console_timeline_100k_ms", await first_byte_ms(client, path), "ms")
        report("console_live_lag_p99_ms", await live_lag_p99_ms(gate.admin, client), "ms")


async def first_byte_ms(client: httpx2.AsyncClient, path: str) -> float:
    """Return the median time to the first byte of a page, in ms, once it is warm."""
    found = []
    for _ in range(LOOKS + 1):
        begun_at = time.perf_counter()
        async with client.stream("GET", path) as answer:
            assert answer.status_code == 200
            await anext(answer.aiter_raw())
            found.append((time.perf_counter() - begun_at) * 1000)
    return percentile(found[1:], 50)


async def _store(bus: Bus) -> None:
    """Store many sessions, and many records in one."""
    at = datetime.now(UTC)

    async def said(number: int) -> None:
        record = Said(
            id=f"{number:032x}", session_key=str(LONG), text=f"record {number}", at=at,
            caused_by="m", turn_seq=1,
        )  # fmt: skip
        await bus.publish(LONG.out_said(record.id), encode(record))

    async def session(number: int) -> None:
        key = SessionKey(LONG.user, "vigil", f"t{number}")
        message = UserMessage(
            id=f"m{number}", session_key=str(key), created_at=at,
            payload=UserMessagePayload(text="hi"),
        )  # fmt: skip
        await bus.publish(key.in_user, encode(message))

    for make, count in ((session, SESSIONS), (said, RECORDS)):
        for start in range(0, count, AT_ONCE):
            await asyncio.gather(*(make(number) for number in range(start, start + AT_ONCE)))


async def live_lag_p99_ms(bus: Bus, client: httpx2.AsyncClient) -> float:
    """Return how long after a signal is stored an open page hears that something changed."""
    lag_ms = []
    async with client.stream("GET", "/console/live") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        for number in range(CHANGES):
            begun_at = time.perf_counter()
            await bus.publish(LONG.signal("message.sent"), encode(_signal(number)))
            while await anext(lines) != "event: changed":
                pass
            lag_ms.append((time.perf_counter() - begun_at) * 1000)
    return percentile(lag_ms, 99)


def _signal(number: int) -> Signal:
    return Signal(
        id=f"SESSIONS-{number}-message.sent", kind="message.sent", agent=LONG.agent,
        owner=LONG.user, at=datetime.now(UTC),
        source=SignalSource(stream="SESSIONS", seq=number + 1), session_key=str(LONG),
    )  # fmt: skip
