"""What one person, or nobody, does to take what is everybody's: each as a process of its own.

    python -m bench.attacks NAME URL TOKEN

Prints one JSON object once the attack is at full strength, goes on until its input ends, then
prints another one with what became of it. An attack comes from 127.0.0.2, so that it has an address
of its own; it is nice to the rest of the machine, since an attacker's processors aren't ours.

A new one is a coroutine function in `ATTACKS` that calls `Target.ready` and runs until it is
cancelled; what the system needs for it beside the defaults goes into `SETTINGS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import uvloop

from bench.load import Http, head_of

ADDRESS: Final = "127.0.0.2"
CONNECTIONS: Final = 8
THREADS: Final = 175
CONNECTIONS_SILENT: Final = 5_000
FILL_S: Final = 15.0
"""By then the silent connections are there, or never will be."""
BRACKETS: Final = 240_000


class Target:
    """The system under attack, and what it answered."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self.statuses: Counter[str] = Counter()
        """How many requests got each status, and whatever else an attack counts."""

    def ready(self, **facts: Any) -> None:
        """Tell that the attack is at full strength."""
        print(json.dumps(facts), flush=True)

    async def connect(self) -> Http:
        """Open a keep-alive connection from the attacker's address."""
        where = urlsplit(self.url)
        loop = asyncio.get_running_loop()
        _, http = await loop.create_connection(
            Http, where.hostname or "", where.port or 80, local_addr=(ADDRESS, 0)
        )
        return http

    async def post(self, http: Http, thread: str, body: bytes) -> int:
        """Post `body` as a message of the attacker's; return the status."""
        status, _ = await http.post(head_of(self.url, self.token, f"mallory:vigil:{thread}"), body)
        self.statuses[str(status)] += 1
        return status


Attack = Callable[[Target], Awaitable[None]]


async def silent(target: Target) -> None:
    """Open connections that say nothing, as many as there may be, and again when they end."""
    where = urlsplit(target.url)
    address = (where.hostname or "", where.port or 80)
    loop = asyncio.get_running_loop()
    open_now: set[asyncio.Transport] = set()

    class Silent(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self._transport = transport
            open_now.add(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            open_now.discard(self._transport)
            target.statuses["closed"] += 1

    async def fill(count: int) -> None:
        for _ in range(count):
            try:
                async with asyncio.timeout(1.0):
                    await loop.create_connection(Silent, *address, local_addr=(ADDRESS, 0))
                target.statuses["opened"] += 1
            except (OSError, TimeoutError):
                target.statuses["refused"] += 1
                await asyncio.sleep(0.05)

    async def keep_full() -> None:
        while True:
            if len(open_now) < count:
                await fill(min(100, count - len(open_now)))
            else:
                await asyncio.sleep(0.05)

    count = min(CONNECTIONS_SILENT, _files() - 100)
    tasks = [asyncio.create_task(keep_full()) for _ in range(16)]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FILL_S):
            while len(open_now) < count:
                await asyncio.sleep(0.1)
    target.ready(silent=len(open_now))
    await asyncio.gather(*tasks)


async def deep_json(target: Target) -> None:
    """Send bodies of nothing but brackets, one after the other on each connection."""
    body = b"[" * BRACKETS
    target.ready(bytes=len(body))

    async def send() -> None:
        http = await target.connect()
        while True:
            await target.post(http, "deep", body)

    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))


async def backlog(target: Target) -> None:
    """Say things in many threads, faster than they can be answered."""

    async def talk(worker: int) -> None:
        http = await target.connect()
        number = worker
        while True:
            number += CONNECTIONS
            body = b'{"text":"message %d"}' % number
            if await target.post(http, f"t{number % THREADS}", body) == 429:
                await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(talk(worker)) for worker in range(CONNECTIONS)]
    await asyncio.sleep(3.0)
    target.ready(stored=target.statuses["202"], threads=THREADS)
    await asyncio.gather(*tasks)


ATTACKS: Final[Mapping[str, Attack]] = {
    "silent": silent,
    "deep_json": deep_json,
    "backlog": backlog,
}
SETTINGS: Final[Mapping[str, str]] = {}
"""Settings of the attacked system, as environment variables, beside what it ships with."""


def _files() -> int:
    """Raise the limit of open files as far as it goes; return it."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def main(name: str, url: str, token: str) -> None:
    target = Target(url, token)
    loop = asyncio.get_running_loop()
    attack = asyncio.ensure_future(ATTACKS[name](target))
    ended = asyncio.ensure_future(loop.run_in_executor(None, sys.stdin.read))
    await asyncio.wait({attack, ended}, return_when=asyncio.FIRST_COMPLETED)
    if attack.done():
        attack.result()
    attack.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await attack
    print(json.dumps(dict(target.statuses)), flush=True)


if __name__ == "__main__":
    os.nice(19)
    _, which, address, secret = sys.argv
    uvloop.run(main(which, address, secret))
