"""What 2,000 open sockets take of the gateway, and what one that doesn't read does to the others.

The sockets are of sessions that nobody speaks in, opened by a process of its own:

    python -m bench.growth.sockets URL TOKEN COUNT

says ``ready`` once all are open, and ends with its input. The one that doesn't read is of a session
in which much was said that it wants to have, and where somebody goes on talking; it asks the kernel
for the smallest buffer there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvloop
from websockets.asyncio.client import ClientConnection, connect

from bench import system
from bench.growth.records import written
from bench.load import connect_http, converse, head_of
from bench.numbers import percentile, report_rounds
from vigil.subjects import SessionKey

SOCKETS: Final = 2_000
UNREAD: Final = "unread"
"""The thread of the slow reader."""
AT_ONCE: Final = 50
FILES: Final = 10_000
SETTLE_S: Final = 3.0
MESSAGES: Final = 100
"""Of the quiet person, in one measurement."""
SAID, SAID_BYTES = 20_000, 1_000
"""Messages that the slow reader is to be brought, and how long each is."""
SPOKEN: Final = 100
"""Messages meanwhile, in the slow reader's session."""


async def measure(home: Path, rounds: int) -> None:
    """Report `sockets_2000_mb`."""
    await _measure(home, rounds, has_slow_reader=False)


async def measure_table(home: Path, rounds: int) -> None:
    """Report that, and the latencies of a quiet person beside a slow reader among the sockets."""
    await _measure(home, rounds, has_slow_reader=True)


async def _measure(home: Path, rounds: int, *, has_slow_reader: bool) -> None:
    memory_mb: list[float] = []
    slow: list[tuple[float, float]] = []
    for number in range(rounds):
        place = home / str(number)
        place.mkdir()
        if has_slow_reader:
            async with written(place) as writer:
                await writer.converse(SessionKey("me", "vigil", UNREAD), SAID, SAID_BYTES)
        # A process keeps what it once needed, so each round has a fresh one.
        async with system.running(place, files=FILES) as running:
            await running.talk(10, 20, "warm")
            await asyncio.sleep(SETTLE_S)
            before_mb = running.services_rss_mb()
            async with _opened(running):
                await asyncio.sleep(SETTLE_S)
                memory_mb.append(running.services_rss_mb() - before_mb)
                if has_slow_reader:
                    slow.append(await _beside_slow_reader(running))
    report_rounds("sockets_2000_mb", memory_mb, "MiB", sockets=SOCKETS)
    if has_slow_reader:
        report_rounds("slow_reader_p50_ratio", [ratio for ratio, _ in slow], "ratio")
        unread = round(SAID * SAID_BYTES / 2**20)
        report_rounds("slow_reader_mb", [mb for _, mb in slow], "MiB", unread_mb=unread)


@contextlib.asynccontextmanager
async def _opened(running: system.System) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.growth.sockets", running.url, running.token, str(SOCKETS),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError("the sockets failed")
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def _beside_slow_reader(running: system.System) -> tuple[float, float]:
    """Return a quiet person's p50 beside it, over that without it, and what it takes, in MiB."""
    alone_ms = await _quiet(running, "alone")
    before_mb = running.services_rss_mb()
    async with _unread(running):
        beside_ms = await _quiet(running, "beside")
        return beside_ms / alone_ms, running.services_rss_mb() - before_mb


async def _quiet(running: system.System, name: str) -> float:
    """Return the p50 of a quiet person while somebody talks in the slow reader's session."""
    talking = asyncio.create_task(_talk(running))
    late_ms: list[float] = []
    await converse(running.url, running.token, name, MESSAGES, late_ms)
    await talking
    return percentile(late_ms[1:], 50)


async def _talk(running: system.System) -> None:
    http = await connect_http(running.url)
    head = head_of(running.url, running.token, f"me:vigil:{UNREAD}")
    for _ in range(SPOKEN):
        while (await http.post(head, b'{"text":"hello"}'))[0] == 429:
            await asyncio.sleep(0.1)
    http.close()


@contextlib.asynccontextmanager
async def _unread(running: system.System) -> AsyncIterator[None]:
    where = urlsplit(running.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    plain.connect((where.hostname, where.port))
    async with await opened(running.url, running.token, f"me:vigil:{UNREAD}", sock=plain) as one:
        one.transport.pause_reading()
        yield
        one.transport.abort()


async def opened(url: str, token: str, session: str, **options: object) -> ClientConnection:
    """Open a socket of a session."""
    address = f"ws://{urlsplit(url).netloc}/api/ws?session={session}"
    headers = {"Authorization": f"Bearer {token}"}
    return await connect(
        address, additional_headers=headers, compression=None, ping_interval=None, **options
    )


async def main(url: str, token: str, count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    slots = asyncio.Semaphore(AT_ONCE)

    async def open_one(number: int) -> ClientConnection:
        async with slots:
            return await opened(url, token, f"me:vigil:socket-{number}")

    sockets = await asyncio.gather(*(open_one(number) for number in range(count)))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for one in sockets:
        one.transport.abort()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
