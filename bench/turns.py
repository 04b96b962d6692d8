"""The whole way of a message over HTTP and WebSocket beside the floor, with and without
`sync: always`.

In rounds, so that a ratio compares what ran side by side: on a machine with neighbours the floor
alone was seen to double from one minute to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench import floor, system
from bench.numbers import report_rounds
from vigil.settings.sections import Nats

SESSIONS: Final = 100
MESSAGES: Final = 20
WARM: Final = 5
"""Messages of each session before what is measured."""
ALONE: Final = 300
"""Messages of the single session."""


class Round(NamedTuple):
    """What one round found: the floor, and the system, with many sessions and with one."""

    floor: dict[str, float]
    floor_alone: dict[str, float]
    turns: dict[str, float]
    alone: dict[str, float]
    default: dict[str, float]
    """The system without `sync: always`."""


async def measure(home: Path, rounds: int) -> None:
    """Report what a turn costs, and the ratios to the floor of the same round."""
    found = [await _round(home / str(number)) for number in range(rounds)]

    def tell(
        name: str, value: Callable[[Round], float], unit: str = "ratio", **more: object
    ) -> None:
        report_rounds(name, [value(one) for one in found], unit, **more)

    tell("floor_per_s", lambda r: r.floor["per_s"], "1/s")
    tell("floor1_p50_ms", lambda r: r.floor_alone["p50_ms"], "ms")
    tell("turns_per_s", lambda r: r.turns["per_s"], "1/s", sessions=SESSIONS, messages=MESSAGES)
    tell("turn_p50_ms", lambda r: r.turns["p50_ms"], "ms")
    tell("turn_p99_ms", lambda r: r.turns["p99_ms"], "ms")
    tell("turn1_p50_ms", lambda r: r.alone["p50_ms"], "ms")
    tell("turn1_vs_floor1", lambda r: r.alone["p50_ms"] / r.floor_alone["p50_ms"], aim="<= 2.5")
    tell("turns_vs_floor", lambda r: r.turns["per_s"] / r.floor["per_s"], aim=">= 0.55")
    tell("turns_default_per_s", lambda r: r.default["per_s"], "1/s")
    tell("always_vs_default", lambda r: r.turns["per_s"] / r.default["per_s"], aim=">= 0.6")


async def talked(home: Path, sync: str, alone: int = 0) -> tuple[dict[str, float], ...]:
    """Start a system in `home`, and let many talk to it; then one, if it's to say something.

    What each of them found.
    """
    home.mkdir(parents=True)
    async with system.running(home, VIGIL_NATS__SYNC=sync) as running:
        await running.talk(SESSIONS, WARM, "warm")
        many = await running.talk(SESSIONS, MESSAGES, "many")
        return (many, await running.talk(1, alone, "alone")) if alone else (many,)


async def _round(home: Path) -> Round:
    nats = Nats(sync="always")
    base = await floor.measure(home / "floor", nats, sessions=SESSIONS, messages=MESSAGES)
    base_alone = await floor.measure(home / "floor-1", nats, sessions=1, messages=ALONE)
    turns, alone = await talked(home / "always", "always", ALONE)
    (default,) = await talked(home / "default", "default")
    return Round(base, base_alone, turns, alone, default)
