"""Many memories of one owner, written to the log as the memory service writes them.

By HTTP, 100,000 would take minutes that measure nothing. What is told are long conversations of
both families (`bench.conversations`).
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from bench.conversations import Conversation, Turn, build
from bench.memory_api import CONNECTIONS, PATIENCE_S, bus_of, clients
from bench.system import System
from vigil.contracts import Memory, MemorySaved, encode
from vigil.subjects import Scope, token_of

RARE: Final = "rare"
"""A source that has as many of them as one page."""
RARE_COUNT: Final = 10
LEAST_PER_S: Final = 250
"""Records that are taken in, on a busy machine."""


def many(size: int) -> tuple[list[Turn], list[str]]:
    """Return so many turns of long conversations, and questions about them in random order."""
    turns: list[Turn] = []
    questions: list[str] = []
    for talk in _endless():
        turns += talk.turns
        questions += [question.text for question in talk.questions]
        if len(turns) >= size:
            break
    random.Random(size).shuffle(questions)
    return turns[:size], questions


def _endless() -> Iterator[Conversation]:
    for seed in itertools.count(100):
        yield build(seed, "tuning" if seed % 2 else "held_out", sessions=100)


async def fill(system: System, agent: str, turns: Sequence[Turn]) -> None:
    """Write memories of an agent, and wait until the service has taken them into all indexes."""
    now = datetime.now(UTC)
    scope = Scope(agent, "me")
    every = len(turns) // RARE_COUNT
    waiting = iter(enumerate(turns))
    last = 0
    async with bus_of(system, "memory") as bus:

        async def write() -> None:
            nonlocal last
            for number, turn in waiting:
                source = RARE if number % every == 0 else "api"
                record = _record(scope, number, turn, source, now)
                ack = await bus.publish(scope.record("save"), encode(record), msg_id=record.id)
                last = max(last, ack.seq)

        await asyncio.gather(*(write() for _ in range(4 * CONNECTIONS)))
    async with clients(system, 1) as (client,):
        patience_s = PATIENCE_S + len(turns) / LEAST_PER_S
        await client.until(lambda found: found["position"] >= last, patience_s)
        await client.until_found()


def _record(scope: Scope, number: int, turn: Turn, source: str, now: datetime) -> MemorySaved:
    memory_id = token_of("bench", scope.agent, str(number))
    return MemorySaved(
        id=f"save-{memory_id}",
        agent=scope.agent,
        owner=scope.owner,
        at=now,
        by="user:me",
        memory=Memory(
            id=memory_id,
            content=turn.text,
            created_at=now,
            occurred_at=turn.at,
            source=source,
            thread=turn.thread,
        ),
    )
