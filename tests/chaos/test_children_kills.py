"""Workers whose cortex, executor and scheduler are killed while they work (SPEC C-1, S-12, X-5)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.killable import killable, steps_of
from tests.support.talk import Talk
from tests.support.tree import Tree
from vigil.contracts import SpawnSession, TaskBlock

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

WORKERS: Final = 3
PATIENCE_S: Final = 120.0
PLAN: Final = {
    "cortex": (
        "cortex.wake.received", "cortex.event.read", "cortex.model.before_call",
        "cortex.commit.before", "cortex.commit.after", "cortex.wake.before_ack",
    ),
    "executor": ("executor.spawn.after", "executor.tell.after"),
    "scheduler": ("scheduler.schedule.after", "scheduler.turn.before_ack"),
}  # fmt: skip
POINTS: Final = {point for points in PLAN.values() for point in points}
TIMES: Final = {
    "VIGIL_EXECUTOR__SANDBOX": "off",
    "VIGIL_MODEL__TOOL_TIMEOUT_S": "100",
    "VIGIL_AUTONOMY__ORDERED_PER_HOUR": "1000",
}


def order(number: int) -> str:
    return ". ".join(f"Research thing {number}-{i}" for i in range(WORKERS)) + "."


async def test_workers_survive_a_kill_at_each_step(tmp_path: Path) -> None:
    """Each is started once and told of once, whoever died where."""
    plan = {"memory": (), "delivery": ()} | PLAN
    steps = steps_of(plan, dict.fromkeys(POINTS, 4))
    async with killable(tmp_path, steps, TIMES) as (stack, processes):
        tree, talk = await Tree.watch(stack), await Talk.open(stack, "ann:vigil:t")
        number, over = 0, asyncio.create_task(processes.plans_over(PATIENCE_S * 2))
        while not over.done():
            await talk.say(order(number))
            number += 1
            await talk.until(lambda n=number: _told(talk) >= n * WORKERS, PATIENCE_S)  # type: ignore[misc]
        await over
        await talk.until(lambda: talk.turns[-1].state.loop is None, PATIENCE_S)
        spawned = [e.id for t in talk.turns for e in t.effects if isinstance(e, SpawnSession)]
        assert len(spawned) == number * WORKERS
        assert await tree.until(lambda: tree.are_over("worker", len(spawned)), PATIENCE_S)
        assert all(len(starts) == 1 for starts in tree.starts.values())
        told = Counter(block.call_id for block in _results(talk))
        assert told == Counter(spawned)
        assert not [block for block in _results(talk) if block.is_error]
        await talk.until(lambda: len(talk.said) == number * (1 + WORKERS), PATIENCE_S)
        assert talk.turns[-1].state.tasks == {}
        ends = {exit_.crash_at.partition(":")[0] for exit_ in processes.exits if exit_.is_crash}
        assert ends == POINTS


def _results(talk: Talk) -> list[TaskBlock]:
    rows = [row for turn in talk.turns for row in turn.rows]
    return [b for row in rows for b in row.blocks if isinstance(b, TaskBlock)]


def _told(talk: Talk) -> int:
    return len(_results(talk))
