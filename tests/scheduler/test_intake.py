"""Giving up a consumer without keeping its messages."""

from __future__ import annotations

import asyncio

from services.scheduler.intake import pulling
from tests.support.stack import Stack
from tests.support.timers import session
from vigil.topology import SCHEDULER_TURNS

KEY = session()


async def test_what_a_closed_puller_still_gets_reaches_the_next_one_at_once(bare: Stack) -> None:
    """S-8: kept, a turn would be a whole ack_wait late."""
    old, new = await bare.bus("scheduler"), await bare.bus("scheduler")
    admin = await bare.bus("admin")
    for _ in range(3):
        await admin.publish(KEY.turn, b"queued before")
    async with pulling(old, SCHEDULER_TURNS) as puller:
        first = await anext(puller)
        await old.ack(first)
    found: set[int] = set()
    async with pulling(new, SCHEDULER_TURNS) as puller:
        for _ in range(10):
            await admin.publish(KEY.turn, b"published after")
        async with asyncio.timeout(SCHEDULER_TURNS.ack_wait_s / 2):
            while len(found) < 12:
                message = await anext(puller)
                found.add(message.seq)
                await new.ack(message)
    assert first.seq not in found
