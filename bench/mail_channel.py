"""The channel `mail`: from what a server tells (IDLE) until the mail is a message, and what ten
accounts cost in which nothing comes. Real Postfix and Dovecot; the gateway alone, in this
process."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

from bench.numbers import percentile, report
from tests.support.mail_servers import HOST, PASSWORD, MailServers, missing, running_mail_servers
from tests.support.mailing import CHANNEL, pair, section
from tests.support.stack import Stack, running_stack
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.layout import LOG

MAILS: Final = 100
"""Nobody answers them, and what waits of a person is bounded."""
ACCOUNTS: Final = 10
IDLE_S: Final = 30.0
SETTLED_S: Final = 5.0
WITHIN_S: Final = 30.0
MAIL: Final = (
    f"Authentication-Results: {HOST}; dmarc=pass header.from=b.example\r\n"
    "From: ann0@b.example\r\nTo: vigil0@a.example\r\nMessage-ID: <%d@b.example>\r\n"
    "References: <root@b.example>\r\nSubject: a plan\r\n\r\nnumber %d\r\n"
)


async def measure(home: Path) -> None:
    """Report how soon a mail is a message, and what waiting costs."""
    if missing():
        return
    with running_mail_servers() as servers:
        await _measure_events(home / "events", servers)
        bare = await _idle(home / "bare", servers, 0)
        ten = await _idle(home / "ten", servers, ACCOUNTS)
    more = (ten - bare) * 100
    report("idle_10_accounts_cpu_pct", more, "% of a core", aim="< 0.3", bare=round(bare * 100, 3))


@contextlib.asynccontextmanager
async def _reading(home: Path, servers: MailServers, accounts: int) -> AsyncIterator[Stack]:
    home.mkdir()
    names = [CHANNEL, *(f"{CHANNEL}{number}" for number in range(1, ACCOUNTS))][:accounts]
    channels = {name: section(servers, number) for number, name in enumerate(names)}
    # Nobody answers here, and a person's waiting messages are bounded.
    limits = {"person_backlog_max": 10_000}
    sections: dict[str, Any] = {"channels": channels, "gateway": limits}
    async with running_stack(home, ("gateway",), SystemClock(), **sections) as stack:
        facts = stack.contexts["gateway"].facts
        async with asyncio.timeout(WITHIN_S):
            while [one["state"] for one in facts.get("hears", {}).values()] != (
                ["listening"] * accounts
            ):
                await asyncio.sleep(0.05)
        yield stack


async def _measure_events(home: Path, servers: MailServers) -> None:
    async with _reading(home, servers, 1) as stack:
        bus = await stack.bus("admin")
        await pair(bus, "ann", "ann0@b.example")
        stored: asyncio.Queue[float] = asyncio.Queue()
        streams = (await bus.layout()).streams(LOG)
        following = [asyncio.create_task(_follow(bus, name, stored)) for name in streams]
        try:
            with _told(servers) as told:
                lasted = [await _one(servers, told, stored, n) for n in range(MAILS)]
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
    for percent in (50, 99):
        context = {"mails": MAILS} if percent == 50 else {}
        report(f"mail_event_p{percent}_ms", percentile(lasted, percent), "ms", **context)


async def _follow(bus: Bus, stream: str, stored: asyncio.Queue[float]) -> None:
    """Put down when each message of ann's was stored."""
    follower = await bus.follow(stream, ["session.vigil.ann.*.in.said.user"], 0)
    async for _ in follower:
        stored.put_nowait(time.monotonic())


async def _one(
    servers: MailServers, told: queue.Queue[float], stored: asyncio.Queue[float], number: int
) -> float:
    """Return how many milliseconds after the server told another program of a mail it was stored;
    less than 0: that program was told later."""
    servers.drop("vigil0", (MAIL % (number, number)).encode())
    async with asyncio.timeout(WITHIN_S):
        stored_at = await stored.get()
    return (stored_at - await asyncio.to_thread(told.get, timeout=WITHIN_S)) * 1000


@contextlib.contextmanager
def _told(servers: MailServers) -> Iterator[queue.Queue[float]]:
    """Wait for new mail as another program does; put down when it was told of each."""
    told: queue.Queue[float] = queue.Queue()
    line = socket.create_connection(("127.0.0.1", servers.ports["imap"]))
    answers = line.makefile("rb")
    line.sendall(f"a LOGIN vigil0 {PASSWORD}\r\nb EXAMINE INBOX\r\nc IDLE\r\n".encode())
    while not answers.readline().startswith(b"+"):
        pass

    def listen() -> None:
        while answer := answers.readline():
            if answer.endswith(b"EXISTS\r\n"):
                told.put(time.monotonic())

    thread = threading.Thread(target=listen, name="told")
    thread.start()
    try:
        yield told
    finally:
        line.shutdown(socket.SHUT_RDWR)
        thread.join()
        line.close()


async def _idle(home: Path, servers: MailServers, accounts: int) -> float:
    """Return the part of a core that the gateway takes as it waits."""
    async with _reading(home, servers, accounts):
        await asyncio.sleep(SETTLED_S)
        begun, begun_at = _cpu_s(), time.monotonic()
        await asyncio.sleep(IDLE_S)
        return (_cpu_s() - begun) / (time.monotonic() - begun_at)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
