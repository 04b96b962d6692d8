"""What a turn costs by how many sessions are at rest beside it.

The systems with few and with many run side by side, and the load goes to one after the other, in
each round in another order, so that a ratio compares what ran side by side.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.growth.records import written
from bench.numbers import report_rounds
from vigil.subjects import SessionKey

FEW, MANY = 1_000, 200_000
AT_REST: Final = (FEW, 20_000, MANY)
SESSIONS_A_PERSON: Final = 200
SESSIONS, MESSAGES = 20, 20
"""Of the load."""


class Load(NamedTuple):
    turn_ms: float
    """The median."""
    cpu_ms: float
    """Of everything, a message."""
    opening_ms: float
    """The first message of a new session."""
    memory_mb: float
    """Of everything."""


async def measure(home: Path, rounds: int) -> None:
    """Report `rest_200k_turn_ratio`."""
    _report_ratios(await _measured(home, rounds, (FEW, MANY)))


async def measure_table(home: Path, rounds: int) -> None:
    """Report each number of sessions at rest, and the ratio."""
    found = await _measured(home, rounds, AT_REST)
    for count, loads in found.items():
        for what, unit in (("turn_ms", "ms"), ("opening_ms", "ms"), ("memory_mb", "MiB")):
            report_rounds(f"rest_{count}_{what}", [getattr(one, what) for one in loads], unit)
    _report_ratios(found)


def _report_ratios(found: dict[int, list[Load]]) -> None:
    pairs = list(zip(found[MANY], found[FEW], strict=True))
    report_rounds("rest_200k_turn_ratio", [a.turn_ms / b.turn_ms for a, b in pairs], "ratio")
    report_rounds("rest_200k_cpu_ratio", [a.cpu_ms / b.cpu_ms for a, b in pairs], "ratio")


async def _measured(home: Path, rounds: int, counts: tuple[int, ...]) -> dict[int, list[Load]]:
    found: dict[int, list[Load]] = {count: [] for count in counts}
    async with contextlib.AsyncExitStack() as stack:
        systems: dict[int, system.System] = {}
        for count in counts:
            place = home / str(count)
            async with written(place) as writer:
                for number in range(count):
                    await writer.converse(_key(number), 1)
            systems[count] = await stack.enter_async_context(system.running(place))
            await systems[count].talk(SESSIONS, 5, "warm")
        for number in range(rounds):
            for count in counts[:: 1 if number % 2 else -1]:
                found[count].append(await _load(systems[count], f"load{number}"))
    return found


async def _load(running: system.System, name: str) -> Load:
    begun_s = running.cpu_s()
    found = await running.talk(SESSIONS, MESSAGES, name)
    cpu_ms = (running.cpu_s() - begun_s) * 1000 / (SESSIONS * (MESSAGES + 1))
    return Load(found["p50_ms"], cpu_ms, found["opening_ms"], running.rss_mb())


def _key(number: int) -> SessionKey:
    person, thread = divmod(number, SESSIONS_A_PERSON)
    return SessionKey(f"person-{person}", "vigil", f"rest-{thread}")
