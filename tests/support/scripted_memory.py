"""Answers recalls on the bus as a test decides, in the place of the memory service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
from nats.aio.msg import Msg

from tests.support.stack import Stack
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.questions import Hit, MemoryView, Parts, Reply
from vigil.subjects import Scope

Answer = Callable[[Recall], Reply | Awaitable[Reply]]
NOTHING = Recalled(hits=())
EMPTY = Recalled(hits=(), is_empty=True)


def view(number: int, content: str, **of: Any) -> MemoryView:
    fields: dict[str, Any] = {
        "created_at": datetime(2026, 11, 1, 9, tzinfo=UTC),
        "source": "chat:t9",
        "seq": number,
        "decayed": 0.6,
    }
    return MemoryView(id=f"{number:032x}", content=content, **(fields | of))


def found(*memories: MemoryView, degraded: tuple[str, ...] = ()) -> Recalled:
    hits = tuple(Hit(memory=memory, score=1.0, parts=Parts()) for memory in memories)
    return Recalled(hits=hits, degraded=degraded)


class ScriptedMemory:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _: NOTHING
        self.asked: list[tuple[Scope, Recall]] = []
        self.gate = asyncio.Event()
        """For answers that wait until the test lets them go on."""

    @property
    def queries(self) -> list[str]:
        return [question.query for _, question in self.asked]

    async def handle(self, msg: Msg) -> None:
        question = msgspec.json.decode(msg.data, type=Recall)
        self.asked.append((Scope.of_subject(msg.subject), question))
        reply = self.answer(question)
        reply = await reply if isinstance(reply, Awaitable) else reply
        await msg.respond(msgspec.json.encode(reply))

    async def waits(self, _: Recall) -> Reply:
        """Answer nothing until `gate` is set."""
        await self.gate.wait()
        return NOTHING


@asynccontextmanager
async def scripted_memory(stack: Stack) -> AsyncIterator[ScriptedMemory]:
    """Listen in the place of the memory service."""
    bus, memory = await stack.bus("memory"), ScriptedMemory()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(msg: Msg) -> None:
        # Several recalls may wait at once; the client hands over one message at a time.
        tasks.add(asyncio.create_task(memory.handle(msg)))

    await bus.listen("rpc.memory.recall.*.*", handle)
    try:
        yield memory
    finally:
        for task in tasks:
            task.cancel()
