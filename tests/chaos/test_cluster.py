"""The broker as a cluster of three: its leader is killed again and again while people talk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path

import msgspec
import pytest

from tests.chaos.arena import PARTITIONS, Arena
from tests.support.cluster import SIZE, Cluster, running_cluster
from tests.support.stack import settings_of
from vigil.broker.ports import free_port
from vigil.clock import SystemClock
from vigil.erasure.erase import Eraser
from vigil.local.home import ensure_home

pytestmark = pytest.mark.chaos

SERVICES = ("gateway", "cortex", "memory", "scheduler", "delivery")
GAP_S_MAX = 20.0
"""An election takes 4 to 9 s (Raft's timeouts), and what was asked meanwhile is asked again."""
ORDER_MARGIN_S = 4.0
"""Turns are read from one leader, and what fires is stored with another. That nobody answers the
scheduler is noticed after 2.5 s of silence; until then it fires what it knows of."""
PATIENCE_S = 40.0
STEADY_S = 1.0
"""How long people are served again before the next kill."""


@contextlib.asynccontextmanager
async def running_arena(home: Path, seed: int) -> AsyncIterator[tuple[Arena, Cluster]]:
    """A cluster, and an arena whose services know all of its nodes."""
    ensure_home(settings_of(home))
    async with running_cluster(home / "cluster", home, PARTITIONS) as cluster:
        admin = await cluster.admin()
        environment = {"VIGIL_NATS__REPLICAS": str(SIZE)}
        arena = Arena(home, cluster.url, admin, free_port(), seed, environment)
        arena.rules = msgspec.structs.replace(arena.rules, order_margin_s=ORDER_MARGIN_S)
        try:
            await arena.follow()
            yield arena, cluster
        finally:
            await arena.close()
            await admin.close()


async def _kill_leader(arena: Arena, cluster: Cluster) -> float:
    """Kill the node that leads a partition, start it again, wait until all is whole and served."""
    leader = cluster.servers[
        await cluster.leader(arena.admin, arena.random.choice((await arena.admin.layout()).logs))
    ]
    killed_s = arena.now_s()
    leader.kill()
    await asyncio.sleep(arena.random.uniform(0.0, 2.0))
    leader.start()
    steady_s = killed_s + STEADY_S
    for name, successes in (("accepted", _accepted), ("answered", _answered)):
        await arena.until(
            lambda of=successes: any(at > steady_s for at in of(arena)),  # type: ignore[misc]
            PATIENCE_S, f"something {name}",
        )  # fmt: skip
    await cluster.whole(arena.admin)
    return killed_s


def _accepted(arena: Arena) -> list[float]:
    sent = [s for client in arena.clients for s in client.records.sent]
    return [s.accepted_at_s for s in sent if s.accepted_at_s is not None]


def _answered(arena: Arena) -> list[float]:
    sent = [s for client in arena.clients for s in client.records.sent]
    return [s.answered_at_s for s in sent if s.answered_at_s is not None]


def gaps_s(successes: Sequence[float], kills_s: Sequence[float]) -> list[float]:
    """Return for each kill the longest time without a success, until the next kill.

    >>> gaps_s([0.5, 1.0, 1.5, 7.0, 7.5, 8.5, 8.75], [1.2, 7.2])
    [5.5, 1.0]
    """
    pairs = list(pairwise(sorted(successes)))
    until_s = [*kills_s[1:], kills_s[-1] + GAP_S_MAX + 10]
    return [
        max((b - a for a, b in pairs if b > killed_s and a < end_s), default=0.0)
        for killed_s, end_s in zip(kills_s, until_s, strict=True)
    ]


def _summary(name: str, gaps: list[float]) -> str:
    gaps = sorted(gaps)
    p95 = gaps[ceil(0.95 * len(gaps)) - 1]
    listed = " ".join(f"{gap:.1f}" for gap in gaps)
    return f"{name} p50 {gaps[len(gaps) // 2]:.1f} s, p95 {p95:.1f} s of {listed}"


@pytest.mark.long
async def test_leaders_are_killed(tmp_path: Path, seed: int) -> None:
    """X-5, S-1, S-4 to S-8, S-10: nothing acknowledged is lost, nothing doubled, order kept:
    20 kills under 30 sessions."""
    kills, sessions = 20, 30
    async with running_arena(tmp_path, seed) as (arena, cluster):
        for service in SERVICES:
            arena.processes.start(service)
        await arena.talk(sessions)
        await arena.until(lambda: len(_accepted(arena)) > 2 * sessions, 30.0, "all talk")
        done = [await _kill_leader(arena, cluster) for _ in range(kills)]
        arena.processes.check()
        await arena.hush()
        wrong = await arena.verdict()
        assert not wrong, wrong
        accepted = gaps_s(_accepted(arena), done)
        answered = gaps_s(_answered(arena), done)
        print(f"\nleader kills (seed {seed}): {kills} under {sessions} sessions")
        print(arena.counts())
        print(_summary("nothing accepted:", accepted))
        print(_summary("nothing answered:", answered))
        assert max(accepted) < GAP_S_MAX


async def test_a_person_is_erased_from_every_stream(tmp_path: Path) -> None:
    """X-8: a stream whose messages go once they are taken in is read there, too."""
    ensure_home(settings_of(tmp_path))
    async with running_cluster(tmp_path / "cluster", tmp_path) as cluster:
        admin = await cluster.admin()
        for subject in ("event.ann.ci", "event.bob.ci", "session.vigil.ann.t1.turn"):
            await admin.publish(subject, b"{}")
        eraser = Eraser(admin, "ann", SystemClock(), lambda what, count: None)
        await eraser.sweep(quiet_s=0)
        assert await eraser.left() == {}
        assert [one.subject for one in await admin.read("EVENTS", ["event.>"])] == ["event.bob.ci"]
        await admin.close()
