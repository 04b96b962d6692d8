"""Many memories of one owner, written to the log as the memory service writes them.

By HTTP, 100,000 would take minutes that measure nothing. What is told are long conversations of
both families (`bench.conversations`).
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
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
    await fill_scopes(system, {Scope(agent, "me"): turns})


async def fill_scopes(system: System, told: Mapping[Scope, Sequence[Turn]]) -> None:
    """Write memories of several, one of each in turn, as if all of them talked; and wait."""
    now = datetime.now(UTC)
    waiting = _in_turn(told)
    last = 0
    async with bus_of(system, "memory") as bus:

        async def write() -> None:
            nonlocal last
            for scope, number, turn in waiting:
                every = len(told[scope]) // RARE_COUNT
                source = RARE if number % every == 0 else "api"
                record = _record(scope, number, turn, source, now)
                ack = await bus.publish(scope.record("save"), encode(record), msg_id=record.id)
                last = max(last, ack.seq)

        await asyncio.gather(*(write() for _ in range(4 * CONNECTIONS)))
    async with clients(system, 1) as (client,):
        patience_s = PATIENCE_S + sum(map(len, told.values())) / LEAST_PER_S
        await client.until(lambda found: found["position"] >= last, patience_s)
        await client.until_found(patience_s)


def _in_turn(told: Mapping[Scope, Sequence[Turn]]) -> Iterator[tuple[Scope, int, Turn]]:
    for number in range(max(map(len, told.values()))):
        for scope, turns in told.items():
            if number < len(turns):
                yield scope, number, turns[number]


def _record(scope: Scope, number: int, turn: Turn, source: str, now: datetime) -> MemorySaved:
    memory_id = token_of("bench", scope.agent, scope.owner, str(number))
    return MemorySaved(
        id=f"save-{memory_id}",
        agent=scope.agent,
        owner=scope.owner,
        at=now,
        by=f"user:{scope.owner}",
        memory=Memory(
            id=memory_id,
            content=turn.text,
            created_at=now,
            occurred_at=turn.at,
            source=source,
            thread=turn.thread,
        ),
    )
