"""Delivery killed at each named step, by a process that really ends there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.chaos.processes import launched
from tests.support.delivery import all_acked, conversation
from tests.support.stack import Stack, running_stack
from vigil import crash

STEPS = ("delivery.turn.", "delivery.claim.", "delivery.void.")
POINTS = [name for name in crash.POINTS if name.startswith(STEPS)]
"""Of saying; those of carrying over a channel are in tests/chaos/test_channel_kills.py."""


async def _run_until_crash(stack: Stack, home: Path, point: str) -> None:
    """Run delivery as a process of its own until it ends at `point`."""
    environment = os.environ | {
        "VIGIL_HOME": str(home),
        "NATS_URL": stack.broker.url,
        "VIGIL_CRASH_AT": point,
    }
    process = await launched("services.delivery", environment)
    try:
        assert await asyncio.wait_for(process.wait(), 20) == crash.EXIT_CODE
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _kill_and_go_on(home: Path, point: str) -> None:
    async with running_stack(home, services=()) as stack:
        talk = conversation(await stack.bus("admin"))
        await talk.user()
        first, stale = talk.send(), talk.send(is_autonomous=True)
        await talk.turn(first)
        await talk.turn(stale)
        await talk.user("wait")
        last = talk.send()
        await talk.turn(last)
        await _run_until_crash(stack, home, f"{point}:1")
        await stack.start("delivery")
        await talk.settled(first, stale, last)
        await all_acked(talk.bus)
        assert await talk.said_ids() == [first.id, last.id], point
        assert [receipt.effect_id for receipt in await talk.receipts()] == [stale.id], point


async def test_killed_at_each_step(tmp_path: Path) -> None:
    """S-5, S-6, S-10: killed at a step, another replica goes on: once, in order, void is void."""
    # At once, each with a broker of its own: every one waits out the same ack_wait.
    await asyncio.gather(*(_kill_and_go_on(tmp_path / point, point) for point in POINTS))
