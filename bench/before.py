"""What a message and a minute of rest cost: this tree beside an older commit, in turns.

Both are asked the same by the load of this tree. A round has the floor, then one and the other; the
next begins with the other. Messages alone take seconds a round: on a machine with neighbours, where
a round may be off by a tenth, a difference of a few per cent takes many of those.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from bench import floor, system
from bench.numbers import report_rounds
from bench.starting import COMMIT, Build, two_builds
from bench.turns import ALONE, MESSAGES, SESSIONS, WARM
from vigil.settings.sections import Nats

SETTLE_S: Final = 15.0
"""From the last message to rest: by then each session is at rest."""
REST_S: Final = 40.0


class Talked(NamedTuple):
    """What messages of many sessions took."""

    per_s: float
    p50_ms: float
    services_ms: float
    broker_ms: float
    """CPU of a message."""


class Found(NamedTuple):
    """What a build took in one round."""

    talked: Talked
    alone_ms: float
    """p50 of the single session."""
    rest_pct: float
    """CPU at rest, of a core."""
    rest_mb: float
    floor_per_s: float
    floor_alone_ms: float


T = TypeVar("T")
Figures = Mapping[str, tuple[str, Callable[[T], float]]]
OF_MESSAGES: Final[Figures[Talked]] = {
    "turns_per_s": ("1/s", lambda one: one.per_s),
    "turn_p50_ms": ("ms", lambda one: one.p50_ms),
    "message_cpu_ms": ("ms", lambda one: one.services_ms + one.broker_ms),
    "message_cpu_services_ms": ("ms", lambda one: one.services_ms),
    "message_cpu_broker_ms": ("ms", lambda one: one.broker_ms),
}
OF_THE_REST: Final[Figures[Found]] = {
    "turns_vs_floor": ("ratio", lambda one: one.talked.per_s / one.floor_per_s),
    "turn1_vs_floor1": ("ratio", lambda one: one.alone_ms / one.floor_alone_ms),
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
    talked = {name: [one.talked for one in rounds_] for name, rounds_ in found.items()}
    _report(OF_MESSAGES, talked, commit)
    _report(OF_THE_REST, found, commit)


async def measure_messages(home: Path, rounds: int, commit: str = COMMIT) -> None:
    """Report what messages of many sessions take in both builds, and the ratios."""
    found: dict[str, list[Talked]] = {}
    with two_builds(home, commit) as builds:
        for build in builds.values():
            await asyncio.to_thread(build.install)
        for number in range(rounds):
            for name in list(builds)[:: 1 if number % 2 else -1]:
                place = home / str(number) / name
                async with _running(place, builds[name]) as running:
                    found.setdefault(name, []).append(await _talked(running))
                await asyncio.to_thread(shutil.rmtree, place)
    _report(OF_MESSAGES, found, commit)


def _report(figures: Figures[T], found: Mapping[str, Sequence[T]], commit: str) -> None:
    for figure, (unit, of) in figures.items():
        for name, rounds in found.items():
            report_rounds(figure, [of(took) for took in rounds], unit, build=name)
        pairs = zip(found["now"], found[commit], strict=True)
        report_rounds(f"{figure}_ratio", [of(now) / of(was) for now, was in pairs], "ratio")


@contextlib.asynccontextmanager
async def _running(place: Path, build: Build) -> AsyncIterator[system.System]:
    place.mkdir(parents=True)
    async with system.running(
        place, python=str(build.bin / "python"), folder=build.place, VIGIL_NATS__SYNC="always"
    ) as running:
        yield running


async def _talked(running: system.System) -> Talked:
    await running.talk(SESSIONS, WARM, "warm")
    before = running.cpu_s_by_part()
    many = await running.talk(SESSIONS, MESSAGES, "many")
    after = running.cpu_s_by_part()
    messages = SESSIONS * (MESSAGES + 1)  # one opens each
    return Talked(
        per_s=many["per_s"],
        p50_ms=many["p50_ms"],
        services_ms=(after["services"] - before["services"]) * 1000 / messages,
        broker_ms=(after["broker"] - before["broker"]) * 1000 / messages,
    )


async def _round(place: Path, build: Build, floor_per_s: float, floor_alone_ms: float) -> Found:
    async with _running(place, build) as running:
        talked = await _talked(running)
        alone = await running.talk(1, ALONE, "alone")
        await asyncio.sleep(SETTLE_S)
        rest_s = running.cpu_s()
        await asyncio.sleep(REST_S)
        return Found(
            talked=talked,
            alone_ms=alone["p50_ms"],
            rest_pct=(running.cpu_s() - rest_s) / REST_S * 100,
            rest_mb=running.rss_mb(),
            floor_per_s=floor_per_s,
            floor_alone_ms=floor_alone_ms,
        )
