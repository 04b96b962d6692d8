"""A mind whose cortex, executor, scheduler and broker are killed: each decision is applied once
(G-1, G-5, X-5)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from services.cortex.models.rehearsal.cycles import TOLD
from tests.chaos.killable import NO_SANDBOX, assert_each_was_killed, killable, steps_of
from tests.support.examples import repeats
from tests.support.goal_records import goal_of
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import GOALS
from vigil.bus.bus import Bus
from vigil.contracts import Change, External, ExternalPayload, ToldEvent, decode_event, encode
from vigil.errors import Unavailable
from vigil.minds import mind_of
from vigil.subjects import Scope, SessionKey

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

ROUNDS: Final = repeats(4, fast=1)
PLAN: Final = {
    "cortex": ("cortex.commit.before", "cortex.commit.after", "cortex.model.after_call") * ROUNDS,
    "executor": (
        "executor.turn.received",
        "executor.tell_person.after",
        "executor.asked.changed",
        "executor.slot.told",
        "executor.slot.ended",
    )
    * ROUNDS,
    "scheduler": ("scheduler.slot.decided", "scheduler.slot.begun") * ROUNDS,
}
"""Ten kills a round, and the broker's: 41 in `make chaos`."""
PASSAGES: Final = {"cortex.commit.before": 2, "cortex.commit.after": 2}
"""Whoever goes on first commits that it does: a step that kills five in a row is given up."""
PATIENCE_S: Final = 60.0
WHOSE: Final = Scope("vigil", "ann")
SETTINGS: Final = {
    "VIGIL_MIND__ENABLED": "true",
    "VIGIL_MIND__TICK_SECONDS": "1",
    "VIGIL_AUTONOMY__ENABLED": "true",
    **NO_SANDBOX,
}
MIND: Final = mind_of(WHOSE)
HOME: Final = SessionKey("ann", "vigil", "main")


async def tell(bus: Bus, name: str) -> None:
    """Let an event come in whose kind is its name."""
    payload = ExternalPayload(source="api:ann", content=f"{name} failed", kind=name)
    event = External(id=name, session_key=str(MIND), created_at=datetime.now(UTC), payload=payload)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(Unavailable):
                await bus.publish(MIND.in_event("external"), encode(event), msg_id=name)
                return
            await asyncio.sleep(0.1)


async def told(bus: Bus) -> list[str]:
    """What the person's home was told."""
    found = await bus.read("SESSIONS", [f"{HOME.root}.in.told.*"])
    events = [decode_event(message.data) for message in found]
    return [event.payload.text for event in events if isinstance(event, ToldEvent)]


async def until_told(bus: Bus, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(Unavailable):
                if len(set(await told(bus))) >= count:
                    return
            await asyncio.sleep(0.1)


async def test_each_decision_is_applied_once_whoever_dies(tmp_path: Path) -> None:
    """Nothing that came in is lost, nothing is said or noted twice, and each goal that is due is
    looked at in the end."""
    async with killable(tmp_path, steps_of(PLAN, PASSAGES), SETTINGS) as (stack, processes):
        admin = await stack.bus("admin")
        plans = asyncio.create_task(processes.plans_over(3 * PATIENCE_S))
        count = 0
        while not plans.done() or count < 3:
            goal = goal_of(id=f"{count:032x}", check_interval_s=86_400)
            with contextlib.suppress(Unavailable):
                await KeptBoard(admin, GOALS).replace(0, goal, Change(by="ann"), datetime.now(UTC))
            count += 1
            await tell(admin, f"job-{count}")
            await until_told(admin, count)
            if count == 2:
                stack.broker.kill()
        await plans
        assert_each_was_killed(processes, PLAN)
        wanted = [TOLD.format(kind=f"job-{number}") for number in range(1, count + 1)]
        await _settled(admin, count)
        assert sorted(await told(admin)) == sorted(wanted)
        actions = [one.entity for one in await KeptBoard(admin, ACTIONS).all(WHOSE)]
        noted = [one.description for one in actions if one.type == "respond"]
        assert sorted(noted) == sorted(wanted)
        assert {one.outcome for one in actions} == {"success"}


async def _settled(bus: Bus, count: int) -> None:
    """Wait until all is noted, and no goal is due any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(Unavailable):
                goals = [one.entity for one in await KeptBoard(bus, GOALS).all(WHOSE)]
                actions = await KeptBoard(bus, ACTIONS).all(WHOSE)
                is_seen = all(one.last_checked_at is not None for one in goals)
                if is_seen and len(actions) >= count:
                    return
            await asyncio.sleep(0.2)
