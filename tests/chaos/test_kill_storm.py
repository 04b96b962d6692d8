"""SIGKILL at any instant, services and broker alike, while people talk."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, running_arena
from tests.chaos.records import recovery_s

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES = ("gateway", "cortex", "memory", "scheduler", "delivery")
TARGETS = (*SERVICES, "broker")


async def _storm(arena: Arena, kills: int) -> list[tuple[str, float]]:
    """Kill so many times; every target at least once, the rest by the dice."""
    random = arena.random
    targets = [*TARGETS, *(random.choice(TARGETS) for _ in range(kills - len(TARGETS)))]
    random.shuffle(targets)
    done: list[tuple[str, float]] = []
    for target in targets:
        # One in four dies together with the one before.
        pause_s = random.choice((0.0, *(random.uniform(0.3, 3.0) for _ in range(3))))
        until_s = arena.now_s() + pause_s
        await arena.until(lambda at=until_s: arena.now_s() >= at, 10.0, "a pause")  # type: ignore[misc]
        await arena.until(lambda t=target: _kill(arena, t), 20.0, f"{target} to kill")  # type: ignore[misc]
        done.append((target, arena.now_s()))
    return done


def _kill(arena: Arena, target: str) -> bool:
    if target == "broker":
        arena.broker.kill()
        return True
    return arena.processes.kill(target, away_s=arena.random.uniform(0.0, 0.8))


async def test_killed_at_random(tmp_path: Path, seed: int, is_long: bool) -> None:
    """S-1, S-4 to S-8, S-10, S-12, S-13, X-3, X-5: whatever is killed whenever, the log is sound.

    Agents of all three ways to take double texts, and events from outside.

    Long: 40 kills under 50 sessions. Short: 6 under 5.
    """
    kills, sessions = (40, 50) if is_long else (6, 5)
    # Answers take a moment, or there would be nothing to interrupt.
    async with running_arena(tmp_path, seed, VIGIL_MODEL__REHEARSAL_WORD_MS="3") as arena:
        for service in SERVICES:
            arena.processes.start(service)
        await arena.talk(sessions, agents=("vigil", "hasty", "patient"))
        arena.tell()
        done = await _storm(arena, kills)
        arena.processes.check()
        over_s = arena.now_s()
        await arena.hush()
        wrong = await arena.verdict()
        assert not wrong, wrong
        records = [client.records for client in arena.clients]
        recoveries = sorted(recovery_s(records, at_s) for _, at_s in done)
        print(f"\nstorm (seed {seed}): {kills} kills under {sessions} sessions")
        print(arena.counts())
        p95 = recoveries[ceil(0.95 * kills) - 1]
        print(f"recovery p50 {recoveries[len(recoveries) // 2]:.1f} s, p95 {p95:.1f} s, "
              f"max {recoveries[-1]:.1f} s; over after {arena.now_s() - over_s:.1f} s")  # fmt: skip
