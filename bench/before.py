"""What a message and a minute of rest cost: this tree beside an older commit, in turns.

Both are asked the same by the load of this tree. A round has the floor, then one and the other; the
next begins with the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bench import floor, system
from bench.numbers import report_rounds
from bench.starting import COMMIT, Build, two_builds
from bench.turns import ALONE, MESSAGES, SESSIONS, WARM
from vigil.settings.sections import Nats

SETTLE_S: Final = 15.0
"""From the last message to rest: by then each session is at rest."""
REST_S: Final = 40.0


class Found(NamedTuple):
    """What a build took in one round."""

    per_s: float
    p50_ms: float
    alone_ms: float
    """p50 of the single session."""
    services_ms: float
    broker_ms: float
    """CPU of a message."""
    rest_pct: float
    """CPU at rest, of a core."""
    rest_mb: float
    floor_per_s: float
    floor_alone_ms: float


FIGURES: Final[Mapping[str, tuple[str, Callable[[Found], float]]]] = {
    "turns_per_s": ("1/s", lambda one: one.per_s),
    "turns_vs_floor": ("ratio", lambda one: one.per_s / one.floor_per_s),
    "turn_p50_ms": ("ms", lambda one: one.p50_ms),
    "turn1_vs_floor1": ("ratio", lambda one: one.alone_ms / one.floor_alone_ms),
    "message_cpu_ms": ("ms", lambda one: one.services_ms + one.broker_ms),
    "message_cpu_services_ms": ("ms", lambda one: one.services_ms),
    "message_cpu_broker_ms": ("ms", lambda one: one.broker_ms),
    "rest_cpu_pct": ("% of a core", lambda one: one.rest_pct),
    "rest_rss_mb": ("MiB", lambda one: one.rest_mb),
}


async def measure(home: Path, rounds: int, commit: str = COMMIT) -> None:
    """Report each figure of both builds, and the ratio of this tree's to the other's."""
    found: dict[str, list[Found]] = {}
    with two_builds(home, commit) as builds:
        for build in builds.values():
            await asyncio.to_thread(build.install)
        for number in range(rounds):
            place = home / str(number)
            nats = Nats(sync="always")
            many = await floor.measure(place / "floor", nats, sessions=SESSIONS, messages=MESSAGES)
            one = await floor.measure(place / "floor-1", nats, sessions=1, messages=ALONE)
            for name in list(builds)[:: 1 if number % 2 else -1]:
                took = await _round(place / name, builds[name], many["per_s"], one["p50_ms"])
                found.setdefault(name, []).append(took)
    for figure, (unit, of) in FIGURES.items():
        for name in builds:
            report_rounds(figure, [of(took) for took in found[name]], unit, build=name)
        pairs = zip(found["now"], found[commit], strict=True)
        report_rounds(f"{figure}_ratio", [of(now) / of(was) for now, was in pairs], "ratio")


async def _round(place: Path, build: Build, floor_per_s: float, floor_alone_ms: float) -> Found:
    place.mkdir(parents=True)
    async with system.running(
        place, python=str(build.bin / "python"), folder=build.place, VIGIL_NATS__SYNC="always"
    ) as running:
        await running.talk(SESSIONS, WARM, "warm")
        before = running.cpu_s_by_part()
        many = await running.talk(SESSIONS, MESSAGES, "many")
        after = running.cpu_s_by_part()
        alone = await running.talk(1, ALONE, "alone")
        await asyncio.sleep(SETTLE_S)
        rest_s = running.cpu_s()
        await asyncio.sleep(REST_S)
        messages = SESSIONS * (MESSAGES + 1)  # one opens each
        return Found(
            per_s=many["per_s"],
            p50_ms=many["p50_ms"],
            alone_ms=alone["p50_ms"],
            services_ms=(after["services"] - before["services"]) * 1000 / messages,
            broker_ms=(after["broker"] - before["broker"]) * 1000 / messages,
            rest_pct=(running.cpu_s() - rest_s) / REST_S * 100,
            rest_mb=running.rss_mb(),
            floor_per_s=floor_per_s,
            floor_alone_ms=floor_alone_ms,
        )
