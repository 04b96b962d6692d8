"""The console: how soon each page's first byte comes and how large it is, with nothing stored and
with much; how soon a Chromium paints it; and how soon an open page hears of a change.

First bytes are of a gateway and a memory service in this process, over HTTP, by a browser's cookie.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import httpx2

from bench.numbers import percentile, report, rounded
from tests.support import chromium
from tests.support.console import link_of, pages, signed_in
from tests.support.console_much import KEY, Much, below, fill
from tests.support.gateway import Gate
from tests.support.remembering import running_memories
from vigil.bus.bus import Bus
from vigil.contracts import Signal, SignalSource, encode

LOOKS: Final = 10
CHANGES: Final = 100
PAINTS: Final = 5
PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]"
AIM: Final = "<= 150 over the idle one"
TALK: Final = f"/conversations/{KEY}"


class Look(NamedTuple):
    """A page, as a browser gets it."""

    first_byte_ms: float
    size: int


async def measure(home: Path) -> None:
    """Each page, idle and beside much; the slowest beyond the idle one, and the largest."""
    much = Much(is_hostile=False)
    async with running_memories(home) as gate:
        client = (await signed_in(gate, KEY.user)).client
        idle = {path: await look_at(client, path) for path in pages()}
        idle[TALK] = await look_at(client, TALK)
        row = await fill(gate, await gate.person(KEY.user), much)
        newest = await gate.admin.newest(KEY.stream, [KEY.everything])
        found = {path: await look_at(client, path) for path in (*pages(), *below(row, newest))}
        over = {path: one.first_byte_ms - idle_of(idle, path) for path, one in found.items()}
        timeline = f"{TALK}/timeline?after={newest // 2}"
        named = {"": "console_today_ms", timeline: "console_timeline_100k_ms"}
        for path, one in found.items():
            facts = {"page": path or "/", "kB": one.size // 1000, "over": rounded(over[path])}
            name = named.get(path, "console_page_ms")
            report(name, one.first_byte_ms, "ms", **facts, aim=AIM)
        slowest = max(over, key=lambda path: over[path])
        report("console_worst_over_ms", over[slowest], "ms", page=slowest or "/", aim=AIM)
        largest = max(found, key=lambda path: found[path].size)
        size = found[largest].size
        report("console_largest_kb", size / 1000, "kB", page=largest or "/", aim="< 200")
        report("console_live_lag_p99_ms", await live_lag_p99_ms(gate.admin, client), "ms")
        if chromium.binary() is not None:
            paths = (*pages(), TALK, timeline)
            painted = await first_paints_ms(gate, home / "profile", paths)
            for path, paint_ms in painted.items():
                report("console_first_paint_ms", paint_ms, "ms", page=path or "/")


def idle_of(idle: dict[str, Look], path: str) -> float:
    """Return how long such a page took with nothing stored: itself, the list that it belongs to, or
    a conversation without a word."""
    plain = path.partition("?")[0]
    known = (
        plain if plain in idle else TALK if plain.startswith(TALK) else f"/{plain.split('/')[1]}"
    )
    return idle[known].first_byte_ms


async def look_at(client: httpx2.AsyncClient, path: str) -> Look:
    """Return the median time to the first byte of a page, once it is warm, and its size."""
    found_ms, size = [], 0
    for _ in range(LOOKS + 1):
        begun_at = time.perf_counter()
        async with client.stream("GET", f"/console{path}") as answer:
            assert answer.status_code == 200, path
            pieces = answer.aiter_raw()
            size = len(await anext(pieces))
            found_ms.append((time.perf_counter() - begun_at) * 1000)
            async for piece in pieces:
                size += len(piece)
    return Look(percentile(found_ms[1:], 50), size)


async def first_paints_ms(gate: Gate, profile: Path, paths: Iterable[str]) -> dict[str, float]:
    """Return how long after the start of the way to a page a Chromium paints the first of what is
    on it: the median once it is warm."""
    origin, found = f"http://127.0.0.1:{gate.port}", {}
    async with chromium.opened(profile) as tab:
        await tab.look()
        link = await link_of(gate, await gate.token(KEY.user))
        await tab.go(origin + link)
        await tab.press("form button")
        for path in paths:
            painted_ms = []
            for _ in range(PAINTS + 1):
                await tab.go(f"{origin}/console{path}")
                await tab.until(f"{PAINTED} !== undefined")
                painted_ms.append(float(await tab.run(f"{PAINTED}.startTime")))
            found[path] = percentile(painted_ms[1:], 50)
    return found


async def live_lag_p99_ms(bus: Bus, client: httpx2.AsyncClient) -> float:
    """Return how long after a signal is stored an open page hears that something changed."""
    lag_ms = []
    async with client.stream("GET", "/console/live") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        for number in range(CHANGES):
            begun_at = time.perf_counter()
            await bus.publish(KEY.signal("message.sent"), encode(_signal(number)))
            while await anext(lines) != "event: changed":
                pass
            lag_ms.append((time.perf_counter() - begun_at) * 1000)
    return percentile(lag_ms, 99)


def _signal(number: int) -> Signal:
    return Signal(
        id=f"SESSIONS-{number}-message.sent", kind="message.sent", agent=KEY.agent,
        owner=KEY.user, at=datetime.now(UTC),
        source=SignalSource(stream="SESSIONS", seq=number + 1), session_key=str(KEY),
    )  # fmt: skip
