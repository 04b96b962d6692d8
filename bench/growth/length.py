"""What a turn costs by the length of its session: the first one of a session at rest, and the next.

Each round opens a fresh session of each length in one running system, one after the other, so that
a ratio compares what ran side by side.
"""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.growth.records import written
from bench.load import converse
from bench.numbers import report_rounds
from vigil.subjects import SessionKey

SHORT, LONG = 10, 20_000
LENGTHS: Final = (SHORT, 100, 1_000, 10_000, LONG)
MESSAGES: Final = 60
"""Of each session: the first opens it, the others tell what a turn costs."""


class Turns(NamedTuple):
    opening_ms: float
    turn_ms: float
    """The median of those that follow."""


async def measure(home: Path, rounds: int) -> None:
    """Report `session_20k_turn_ratio`."""
    _report_ratios(await _measured(home, rounds, (SHORT, LONG)))


async def measure_table(home: Path, rounds: int) -> None:
    """Report each length, and the ratio."""
    found = await _measured(home, rounds, LENGTHS)
    for length, turns in found.items():
        report_rounds(f"session_{length}_turn_ms", [one.turn_ms for one in turns], "ms")
        report_rounds(f"session_{length}_opening_ms", [one.opening_ms for one in turns], "ms")
    _report_ratios(found)


def _report_ratios(found: dict[int, list[Turns]]) -> None:
    pairs = list(zip(found[LONG], found[SHORT], strict=True))
    report_rounds("session_20k_turn_ratio", [a.turn_ms / b.turn_ms for a, b in pairs], "ratio",
                  turn_ms=round(statistics.median(b.turn_ms for _, b in pairs), 3))  # fmt: skip
    report_rounds(
        "session_20k_opening_ratio", [a.opening_ms / b.opening_ms for a, b in pairs], "ratio",
        opening_ms=round(statistics.median(b.opening_ms for _, b in pairs), 3),
    )  # fmt: skip


async def _measured(home: Path, rounds: int, lengths: tuple[int, ...]) -> dict[int, list[Turns]]:
    ends: dict[SessionKey, int] = {}
    async with written(home) as writer:
        for number, length in itertools.product(range(rounds), lengths):
            key = _key(length, number)
            ends[key] = await writer.converse(key, length)
    found: dict[int, list[Turns]] = {length: [] for length in lengths}
    async with system.running(home) as running:
        await running.talk(10, 20, "warm")
        for number in range(rounds):
            for length in lengths[:: 1 if number % 2 else -1]:
                key = _key(length, number)
                found[length].append(await _turns(running, key, ends[key]))
    return found


async def _turns(running: system.System, key: SessionKey, seen: int) -> Turns:
    """Speak as a client that has seen everything; a new one would be brought all of it first."""
    late_ms: list[float] = []
    await converse(running.url, running.token, key.thread, MESSAGES, late_ms, seen)
    return Turns(late_ms[0], statistics.median(late_ms[1:]))


def _key(length: int, number: int) -> SessionKey:
    return SessionKey("me", "vigil", f"long-{length}-{number}")
