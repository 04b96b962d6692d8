"""What it costs that many people remember much: as many memories each, asked of in turn.

One home grows: at each size people are added, each with 1,000 memories told in turn with everybody
else's; it is started, killed and started again; and questions of some of them, each with a token of
their own, are asked over HTTP, by text, by vectors and by both. What they say comes from as many
long conversations as there are `TALKS`, which people share, but for their names in the log.
"""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.conversations import Turn, build
from bench.memory_api import Client, clients
from bench.memory_filled import fill_scopes
from bench.numbers import percentile, report
from bench.retrieval import MODES
from bench.system import System, tokens_of
from vigil.subjects import Scope

SIZES: Final = (1_000, 100_000, 1_000_000)
"""Memories of everybody."""
EACH: Final = 1_000
TALKS: Final = 20
SESSIONS: Final = 40
"""Conversations of such a talk: enough for `EACH`."""
ASKERS: Final = 200
"""People who ask, at most; each twice: with the first what is on the disk is read."""
AGENT: Final = "vigil"
REST_S: Final = 600.0


class _Talk(NamedTuple):
    turns: Sequence[Turn]
    questions: Sequence[str]


async def measure(home: Path, rounds: int, sizes: Sequence[int] = SIZES) -> None:
    """Report filling, starts, memory, disk and recall at each number of memories."""
    del rounds  # a size takes minutes; what is compared are the sizes
    talks = [_talk(number) for number in range(TALKS)]
    people = 0
    for size in sizes:
        name, wanted = f"memories_{size}", max(1, size // EACH)
        added = {Scope(AGENT, f"person-{one}"): talks[one % TALKS].turns
                 for one in range(people, wanted)}  # fmt: skip
        async with system.running(home) as running:
            await _fill(running, added, name)
        people = wanted
        report(f"{name}_store_mb", _mib(home / "memory"), "MiB", people=people)
        for ending in (signal.SIGTERM, signal.SIGKILL):
            await _started(home, f"{name}_{ending.name.lower()}", ending)
        async with system.running(home) as running:
            await running.until_rest(REST_S)
            report(f"{name}_mb", running.rss_mb(), "MiB", **running.rss_mb_of_each())
            await _ask(running, people, talks, name)


def _talk(number: int) -> _Talk:
    talk = build(number, "held_out", sessions=SESSIONS)
    if len(talk.turns) < EACH:
        raise RuntimeError(f"{SESSIONS} conversations have {len(talk.turns)} turns, not {EACH}")
    return _Talk(talk.turns[:EACH], [one.text for one in talk.questions])


async def _fill(running: System, added: Mapping[Scope, Sequence[Turn]], name: str) -> None:
    begun_at, begun_cpu = time.perf_counter(), running.cpu_s()
    await fill_scopes(running, added)
    count = sum(map(len, added.values()))
    report(f"{name}_taken_in_per_s", count / (time.perf_counter() - begun_at), "1/s")
    report(f"{name}_taken_in_cpu_ms", (running.cpu_s() - begun_cpu) * 1000 / count, "ms")


async def _started(home: Path, name: str, ending: signal.Signals) -> None:
    """End it in that way, and start it again: until it's ready, and until it finds everything."""
    async with system.running(home) as running:
        running.end(ending)
    begun_at = time.monotonic()
    async with system.running(home) as running:
        report(f"{name}_ready_s", time.monotonic() - begun_at, "s")
        async with clients(running, 1) as (client,):
            await client.until_found()
        report(f"{name}_found_s", time.monotonic() - begun_at, "s", cpu_s=running.cpu_s())


async def _ask(running: System, people: int, talks: Sequence[_Talk], name: str) -> None:
    dice = random.Random(people)
    askers = sorted(dice.sample(range(people), min(people, ASKERS)))
    tokens = await tokens_of(running.home, running.nats_url, [f"person-{one}" for one in askers])
    asked = {one: itertools.cycle(talks[one % TALKS].questions) for one in askers}
    async with clients(running, 1) as (client,):
        of = {one: client.of(running, token) for one, token in zip(askers, tokens, strict=True)}
        for which, rounds in (("first_", 1), ("", max(1, ASKERS // len(askers)))):
            times: dict[str, list[float]] = {mode: [] for mode in MODES}
            begun_cpu = running.cpu_s()
            for one in [one for _ in range(rounds) for one in dice.sample(askers, len(askers))]:
                for mode in MODES:
                    times[mode].append(await _took_ms(of[one], next(asked[one]), mode))
            count = sum(map(len, times.values()))
            cpu_ms = (running.cpu_s() - begun_cpu) * 1000 / count
            for mode, found in times.items():
                full = f"{name}_{which}{mode}"
                report(f"{full}_p50_ms", percentile(found, 50), "ms", cpu_ms=round(cpu_ms, 2))
                report(f"{full}_p99_ms", percentile(found, 99), "ms")


async def _took_ms(client: Client, question: str, mode: str) -> float:
    begun_at = time.perf_counter()
    await client.recall(AGENT, question, mode, 10)
    return (time.perf_counter() - begun_at) * 1000


def _mib(folder: Path) -> float:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / 2**20
