"""What many sessions with an open socket each cost, at rest and held open, and a turn beside them.

Each session speaks once, so that it was open in the cortex. Nobody may have more than half of a
gateway's connections, so the sessions are of several people; and where one gateway may not have as
many files as that takes, there are several. The clients are a process of their own:

    python -m bench.growth.crowd COUNT TOKEN,… URL,…

says ``ready`` once all sockets are open; each line of its input has everybody speak once, and is
answered by what that found; it ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import uvloop
from websockets.asyncio.client import ClientConnection

from bench import system
from bench.growth.sockets import opened
from bench.load import Http, answer, connect_http, converse, head_of
from bench.numbers import percentile, report
from bench.system import tokens_of
from services.gateway.http.connections import bounds_of
from vigil.broker.ports import free_port
from vigil.topology import LEASE_TTL_S

SIZES: Final = (1_000, 3_000, 10_000)
SPEAKERS: Final = 50
"""At once, each over an HTTP connection that several sessions share."""
OF_A_PERSON: Final = 2_000
QUIET: Final = 100
"""Messages of the quiet person, in one measurement."""
IDLE_S: Final = 10.0
SETTLE_S: Final = 15.0
"""Longer than `sessions.idle_release_s`."""
HELD_S: Final = 3_600.0
READY_S: Final = 900.0
REST_MS: Final = 60_000.0
"""After so long without a request a connection may be closed by the gateway: a new one is made."""


async def measure(home: Path, rounds: int, sizes: Sequence[int] = SIZES) -> None:
    """Report each number of sockets, with sessions at rest and held open."""
    del rounds  # a size takes minutes, and each ratio is of what ran side by side
    for size in sizes:
        for kind, release_s in (("rest", 10.0), ("held", HELD_S)):
            place = home / f"{kind}-{size}"
            place.mkdir()
            await _measure(place, size, f"sockets_{size}_{kind}", release_s)


async def _measure(home: Path, size: int, name: str, release_s: float) -> None:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    bounds = bounds_of(0, 1, most)
    gateways = [free_port() for _ in range(size // (bounds.known_max * 9 // 10))]
    facts = {"sockets": size, "gateways": 1 + len(gateways), "files": most, "soft": files}
    async with system.running(
        home,
        gateways=gateways,
        VIGIL_SESSIONS__IDLE_RELEASE_S=str(release_s),
        VIGIL_SESSIONS__CONCURRENCY_MAX=str(2 * size),
        VIGIL_GATEWAY__PERSON_BACKLOG_MAX="100000",
    ) as running:
        urls = [running.url, *(f"http://127.0.0.1:{port}" for port in gateways)]
        await running.talk(10, 20, "warm")
        await asyncio.sleep(SETTLE_S)
        before = await _state(running, "alone")
        async with _crowd(running, size, urls) as (opening, speak):
            begun_s = running.cpu_s()
            said = await speak()
            spoken_ms = (running.cpu_s() - begun_s) * 1000 / size
            await asyncio.sleep(SETTLE_S)
            after = await _state(running, "beside")
            again = await speak()
        await asyncio.sleep(SETTLE_S)
        gone = await _state(running, "gone")
        alone_ms = (before["cpu_ms"] + gone["cpu_ms"]) / 2
        alone_p50_ms = (before["p50_ms"] + gone["p50_ms"]) / 2
        report(f"{name}_open_s", opening["s"], "s", **facts, **opening)
        report(f"{name}_speak_cpu_ms", spoken_ms, "ms", first=said, again=again)
        report(f"{name}_mb", after["mb"] - before["mb"], "MiB", by_part=after["parts"])
        report(f"{name}_idle_pct", after["idle_pct"], "% of a core", alone=before["idle_pct"],
               by_part=after["idle_parts"])  # fmt: skip
        report(f"{name}_quiet_ratio", after["p50_ms"] / alone_p50_ms, "ratio",
               p50_ms=after["p50_ms"], p99_ms=after["p99_ms"], alone_p99_ms=gone["p99_ms"],
               cpu_ratio=round(after["cpu_ms"] / alone_ms, 3), gone_mb=gone["mb"])  # fmt: skip
        report(f"{name}_leases_lost", _lost(home), "warnings")


async def _state(running: system.System, name: str) -> dict[str, Any]:
    """Return memory, CPU when nothing happens, and what a quiet person's turn takes."""
    begun_s, parts = running.cpu_s(), running.cpu_s_by_part()
    begun_at = time.monotonic()
    await asyncio.sleep(IDLE_S)
    lasted_s = time.monotonic() - begun_at
    idle_pct = (running.cpu_s() - begun_s) * 100 / lasted_s
    now = running.cpu_s_by_part()
    mb, each_mb = running.rss_mb(), running.rss_mb_of_each()
    late_ms: list[float] = []
    begun_s = running.cpu_s()
    begun_at = time.monotonic()
    await converse(running.url, running.token, name, QUIET, late_ms)
    beside_s = (time.monotonic() - begun_at) * idle_pct / 100
    return {
        "mb": mb, "parts": each_mb, "idle_pct": round(idle_pct, 2),
        "idle_parts": {one: round((now[one] - parts[one]) * 100 / lasted_s, 2) for one in now},
        "p50_ms": round(percentile(late_ms[1:], 50), 2),
        "p99_ms": round(percentile(late_ms[1:], 99), 2),
        "cpu_ms": (running.cpu_s() - begun_s - beside_s) * 1000 / QUIET,
    }  # fmt: skip


def _lost(home: Path) -> int:
    """Count what the log says of leases that ran out while their session was open."""
    return (home / "bench.log").read_text(errors="replace").count("leases lost")


@contextlib.asynccontextmanager
async def _crowd(running: system.System, size: int, urls: Sequence[str]) -> AsyncIterator[Any]:
    people = await _tokens(running, -(-size // OF_A_PERSON))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.growth.crowd", str(size), ",".join(people), ",".join(urls),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    reader, writer = process.stdout, process.stdin

    async def heard() -> dict[str, Any]:
        async with asyncio.timeout(READY_S):
            found: dict[str, Any] = json.loads(await reader.readline() or b'{"error": "ended"}')
        if "error" in found:
            raise RuntimeError(found["error"])
        return found

    async def speak() -> dict[str, Any]:
        writer.write(b"speak\n")
        return await heard()

    try:
        yield await heard(), speak
    finally:
        process.stdin.close()
        await process.wait()


async def _tokens(running: system.System, count: int) -> list[str]:
    made = await tokens_of(running.home, running.nats_url, [f"p{n}" for n in range(count)])
    await asyncio.sleep(LEASE_TTL_S)  # until each gateway knows them
    return made


class Crowd:
    """The clients: a socket for each, and some connections that they speak over in turn."""

    def __init__(self, people: Sequence[str], urls: Sequence[str]) -> None:
        self._people, self._urls = people, urls
        self._sockets: list[ClientConnection] = []

    def _where(self, number: int) -> tuple[str, str, str]:
        """Return the URL, the token and the session of one of them."""
        person = number % len(self._people)
        key = f"p{person}:vigil:crowd-{number}"
        return self._urls[number % len(self._urls)], self._people[person], key

    async def open(self, count: int) -> dict[str, float]:
        slots, begun_at = asyncio.Semaphore(SPEAKERS), time.monotonic()
        late_ms: list[float] = []

        async def one(number: int) -> ClientConnection:
            async with slots:
                started_at = time.monotonic()
                found = await opened(*self._where(number))
                late_ms.append((time.monotonic() - started_at) * 1000)
                return found

        self._sockets = await asyncio.gather(*(one(number) for number in range(count)))
        tenth = max(1, count // 10)
        first, last = late_ms[:tenth], late_ms[-tenth:]
        return {
            "s": time.monotonic() - begun_at,
            "first_tenth_ms": round(percentile(first, 50), 2),
            "last_tenth_ms": round(percentile(last, 50), 2),
        }

    async def speak(self) -> dict[str, float]:
        """Let everybody say something once, and wait for each answer."""
        waiting = iter(range(len(self._sockets)))
        late_ms: list[float] = []
        begun_at = time.monotonic()

        async def speaker() -> None:
            https: dict[str, Http] = {}
            for number in waiting:
                url, token, key = self._where(number)
                if url not in https:
                    https[url] = await connect_http(url)
                started_at = time.monotonic()
                status, body = await https[url].post(head_of(url, token, key), b'{"text":"hello"}')
                if status != 202:
                    raise RuntimeError(f"{status}: {body!r}")
                await answer(self._sockets[number], json.loads(body)["event_id"])
                late_ms.append((time.monotonic() - started_at) * 1000)
                if late_ms[-1] > REST_MS:
                    https.pop(url).close()
            for one in https.values():
                one.close()

        await asyncio.gather(*(speaker() for _ in range(SPEAKERS)))
        lasted_s = time.monotonic() - begun_at
        return {
            "per_s": round(len(late_ms) / lasted_s, 1),
            "p50_ms": round(percentile(late_ms, 50), 1),
            "p99_ms": round(percentile(late_ms, 99), 1),
        }

    def end(self) -> None:
        for one in self._sockets:
            one.transport.abort()


async def main(count: int, people: Sequence[str], urls: Sequence[str]) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd(people, urls)
    try:
        print(json.dumps(await crowd.open(count)), flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await crowd.speak()), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        raise
    crowd.end()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(",")))
