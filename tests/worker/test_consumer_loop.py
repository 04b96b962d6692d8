"""The one loop that pulls: a broker that is away, a backlog, and giving up what nobody took."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.stack import Stack
from tests.support.timers import session
from vigil.bus.bus import Message
from vigil.errors import Unavailable
from vigil.topology import SCHEDULER_TURNS
from vigil.worker.consumer_loop import ConsumerLoop, consuming

KEY = session()


async def test_what_nobody_took_reaches_the_next_one_at_once(bare: Stack) -> None:
    """S-8: kept, a turn would be a whole ack_wait late."""
    old, new = await bare.bus("scheduler"), await bare.bus("scheduler")
    admin = await bare.bus("admin")
    for _ in range(3):
        await admin.publish(KEY.turn, b"queued before")
    first: list[int] = []
    has_one, found, has_all = asyncio.Event(), set[int](), asyncio.Event()

    async def take_one(message: Message) -> None:
        await old.ack(message)
        first.append(message.seq)
        has_one.set()
        await asyncio.Event().wait()

    async def take(message: Message) -> None:
        found.add(message.seq)
        await new.ack(message)
        if len(found) == 12:
            has_all.set()

    async with consuming(old, "scheduler", SCHEDULER_TURNS) as (loop,):
        task = asyncio.create_task(loop.run(take_one))
        await has_one.wait()
        task.cancel()
        await asyncio.wait({task})
    async with consuming(new, "scheduler", SCHEDULER_TURNS) as (loop,):
        for _ in range(10):
            await admin.publish(KEY.turn, b"published after")
        task = asyncio.create_task(loop.run(take))
        async with asyncio.timeout(SCHEDULER_TURNS.ack_wait_s / 2):
            await has_all.wait()
    await asyncio.wait({task})  # closed, it ends by itself
    assert task.exception() is None
    assert first[0] not in found


class FaultyPuller:
    """Fails to ask, now and then; what it has is one message and no more."""

    def __init__(self, *items: Message | Exception) -> None:
        self.items = list(items)
        self.closed = 0
        self.interrupted = asyncio.Event()

    async def __anext__(self) -> Message:
        if not self.items:
            await asyncio.Event().wait()
        item = self.items.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    async def close(self) -> None:
        self.closed += 1


async def test_a_pull_or_an_acknowledgement_that_fails_ends_nothing() -> None:
    """S-10: the connection comes back by itself, and what wasn't acknowledged comes again."""
    away = Unavailable("no broker")
    messages = [Message("a", b"", {}, seq, pending=2 - seq) for seq in range(3)]
    puller: Any = FaultyPuller(away, messages[0], messages[1], away, messages[2])
    loop, taken, has_all = ConsumerLoop(puller, "memory"), list[int](), asyncio.Event()

    async def take(message: Message) -> None:
        taken.append(message.seq)
        if message.seq == 2:
            has_all.set()
        if message.seq == 1:
            raise away

    task = asyncio.create_task(loop.run(take))
    await has_all.wait()
    task.cancel()
    await asyncio.wait({task})
    await loop.close()
    assert taken == [0, 1, 2]
    assert puller.closed == 1
