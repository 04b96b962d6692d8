"""Services in processes: all in one, each in its own, and some apart from the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.numbers import report_rounds
from bench.turns import MESSAGES, SESSIONS, WARM


class Grouping(NamedTuple):
    flags: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


GROUPINGS: Final = {
    "one": Grouping(flags=("--processes=1",)),
    "two": Grouping(),
    "three": Grouping(apart=("cortex", "delivery")),
    "six": Grouping(flags=("--processes=6",)),
}
"""By the number of processes: of three, the cortex, delivery, and all others."""


class Load(NamedTuple):
    """What many sessions found, and what each of their messages took."""

    per_s: float
    cpu_ms: float
    """Of services and broker."""
    rss_mb: float


async def loaded(running: system.System) -> Load:
    """Let many talk to a system."""
    await running.talk(SESSIONS, WARM, "warm")
    before_s = running.cpu_s()
    found = await running.talk(SESSIONS, MESSAGES, "many")
    cpu_ms = (running.cpu_s() - before_s) * 1000 / (SESSIONS * (MESSAGES + 1))  # one opens each
    return Load(found["per_s"], cpu_ms, running.rss_mb())


async def measure(home: Path, rounds: int) -> None:
    """Report throughput, CPU and memory of each grouping, and its throughput over that of one."""
    found: dict[str, list[Load]] = {name: [] for name in GROUPINGS}
    for number in range(rounds):
        for name in list(GROUPINGS)[:: 1 if number % 2 else -1]:
            found[name].append(await _round(home / f"{number}-{name}", GROUPINGS[name]))
    for name, loads in found.items():
        report_rounds(f"processes_{name}_per_s", [one.per_s for one in loads], "1/s")
        report_rounds(f"processes_{name}_cpu_ms", [one.cpu_ms for one in loads], "ms")
        report_rounds(f"processes_{name}_mb", [one.rss_mb for one in loads], "MiB")
        pairs = zip(loads, found["one"], strict=True)
        report_rounds(f"processes_{name}_gain", [a.per_s / b.per_s for a, b in pairs], "ratio")


async def _round(home: Path, grouping: Grouping) -> Load:
    home.mkdir()
    async with system.running(
        home, flags=grouping.flags, apart=grouping.apart, VIGIL_NATS__SYNC="always"
    ) as running:
        return await loaded(running)
