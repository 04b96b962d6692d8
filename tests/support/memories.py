"""Asking a memory service on the bus, and what the cortex would write for it, written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil import topology
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    CallTool,
    CallToolPayload,
    Effect,
    Loop,
    MemoryRecord,
    OpenCall,
    Risk,
    SaveMemory,
    SaveMemoryPayload,
    State,
    ToolResultEvent,
    ToolService,
    Turn,
    Waiting,
    decode_event,
    decode_memory,
    effect_id,
    encode,
)
from vigil.contracts.events import Cause
from vigil.errors import Unavailable
from vigil.memory.client import MemoryClient
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.operations.save import Save, Saved
from vigil.memory.operations.stats import GetStats, Stats
from vigil.memory.questions import Question
from vigil.subjects import MEMORIES_ALL, Scope, SessionKey
from vigil.topology import Consumer

ANN: Final = Scope("vigil", "ann")
BOB: Final = Scope("vigil", "bob")
KEY: Final = SessionKey("ann", "vigil", "t1")


async def until(
    condition: Callable[[], Awaitable[bool]], what: str, *, within_s: float = 30.0
) -> None:
    """Poll until `condition` holds; fail after `within_s` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    pause_s = pauses()
    while not await condition():
        assert loop.time() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(next(pause_s))


class Asking:
    """Asks as the gateway does, about one scope."""

    def __init__(self, bus: Bus, scope: Scope = ANN) -> None:
        self.bus = bus
        self.scope = scope
        self._client = MemoryClient(bus)

    async def ask(self, question: Question, **options: Any) -> Any:
        return await self._client.ask(self.scope, question, **options)

    async def maintain_all(self, question: Any) -> Any:
        return await self._client.maintain_all(question)

    async def save(self, content: str, **fields: Any) -> Saved:
        saved: Saved = await self.ask(Save(content=content, by="user:ann", **fields))
        return saved

    async def recall(self, query: str, **fields: Any) -> Recalled:
        recalled: Recalled = await self.ask(Recall(query=query, **fields))
        return recalled

    async def found(self, query: str, **fields: Any) -> list[str]:
        """Return what a recall finds, the best first."""
        return [hit.memory.content for hit in (await self.recall(query, **fields)).hits]

    async def listed(self, **fields: Any) -> list[str]:
        """Return every content that stands, page by page."""
        contents: list[str] = []
        after = ""
        while True:
            page = await self.ask(ListMemories(after=after, limit=200, **fields))
            contents += [memory.content for memory in page.memories]
            if page.next_after is None:
                return contents
            after = page.next_after

    async def stats(self) -> Stats:
        stats: Stats = await self.ask(GetStats())
        return stats

    async def raw(self, op: str, data: bytes) -> tuple[int, bytes]:
        """Ask with any bytes -> (status, body)."""
        msg = await self.bus.ask(self.scope.question(op), data, timeout=5.0)
        code = (msg.headers or {}).get("Nats-Service-Error-Code", "200")
        return int(code), msg.data

    async def until_vectors(self) -> None:
        """Wait until the index has what SQLite has."""

        async def is_even() -> bool:
            stats = await self.stats()
            return stats.rebuild is None and stats.vectors_position >= stats.position

        await until(is_even, "the vectors caught up")


async def asking(stack: Stack, scope: Scope = ANN) -> Asking:
    return Asking(await stack.bus("gateway"), scope)


async def records(bus: Bus) -> list[MemoryRecord]:
    """Return every record of MEMORIES."""
    return [decode_memory(m.data) for m in await bus.read("MEMORIES", [MEMORIES_ALL])]


# ---------------------------------------------------------------- a session


def call_of(
    tool: str,
    arguments: dict[str, Any],
    ordinal: int = 1,
    *,
    is_tainted: bool = False,
    key: SessionKey = KEY,
    service: ToolService = "memory",
    risk: Risk = "read",
) -> CallTool:
    """Build a call as the core would."""
    payload = CallToolPayload(
        service=service,
        risk=risk,
        tool=tool,
        input=arguments,
        caused_by="event-1",
        due_at=datetime.now(UTC) + timedelta(seconds=60),
        is_tainted=is_tainted,
    )
    id_ = effect_id(str(key), 1, ordinal, "call_tool", payload, service)
    return CallTool(id=id_, ordinal=ordinal, payload=payload)


def save_of(content: str, ordinal: int = 1, **fields: Any) -> SaveMemory:
    """Build what a turn asks to remember."""
    payload = SaveMemoryPayload(content=content, type="fact", source="chat:t1", **fields)
    id_ = effect_id(str(KEY), 1, ordinal, "save_memory", payload, "")
    return SaveMemory(id=id_, ordinal=ordinal, payload=payload)


class Session:
    """One session whose cortex is the test.

    Args:
        consumer: of the service that the turns are for.
        letter: that service's in the header of a turn.
    """

    def __init__(
        self,
        bus: Bus,
        key: SessionKey = KEY,
        *,
        consumer: Consumer = topology.MEMORY_TURNS,
        letter: str = "m",
    ) -> None:
        self.bus = bus
        self.key = key
        self._consumer = consumer
        self._letter = letter
        self.turns = 0
        self._newest_seq = 0

    async def turn(self, *effects: Effect, is_waiting: bool = True) -> int:
        """Commit a turn with these effects; `is_waiting`: the loop waits for its calls."""
        self.turns += 1
        calls = tuple(
            OpenCall(
                effect_id=one.id,
                tool_use_id=f"u{one.ordinal}",
                tool=one.payload.tool,
                service=one.payload.service,
            )
            for one in effects
            if isinstance(one, CallTool)
        )
        now = datetime.now(UTC)
        cause = Cause(id="event-1", seq=1, type="user_message")
        waiting = Waiting(calls=calls, generation=1, due_at=now) if calls else None
        loop = Loop(cause=cause, fence=1, begun_at=now, is_direct=True, waiting=waiting)
        state = State(position=1, turns=self.turns, loop=loop if is_waiting and calls else None)
        turn = Turn(
            id=f"turn-{self.turns}",
            session_key=str(self.key),
            ordinal=self.turns,
            event=cause,
            outcome="continued",
            state=state,
            created_at=now,
            effects=effects,
        )
        subject = self.key.turn_for(self._letter if effects else "")
        seq = await self._stored(subject, encode(turn), f"{self.key}-{turn.id}")
        if effects:
            self._newest_seq = seq
        return seq

    async def _stored(self, subject: str, data: bytes, msg_id: str) -> int:
        """Publish until it is acknowledged: a broker that is killed may have stored it or not."""
        async with asyncio.timeout(30):
            while True:
                try:
                    ack = await self.bus.publish(subject, data, msg_id=msg_id)
                    return ack.seq
                except Unavailable:
                    await asyncio.sleep(0.1)

    async def results(self) -> dict[str, ToolResultEvent]:
        """Return the answers so far, by call."""
        found = {}
        for message in await self.bus.read(self.key.stream, [self.key.in_event("tool_result")]):
            event = decode_event(message.data)
            assert isinstance(event, ToolResultEvent)
            assert event.payload.call_id not in found, "answered twice"
            found[event.payload.call_id] = event
        return found

    async def result(self, call: CallTool) -> ToolResultEvent:
        """Wait for the answer to a call."""
        answers = await self.bus.follow(self.key.stream, [self.key.in_event("tool_result")], 1)
        try:
            async with asyncio.timeout(60):
                async for message in answers:
                    event = decode_event(message.data)
                    assert isinstance(event, ToolResultEvent)
                    if event.payload.call_id == call.id:
                        break
        finally:
            await answers.close()
        return (await self.results())[call.id]

    async def call(self, tool: str, arguments: dict[str, Any], **fields: Any) -> ToolResultEvent:
        """Commit a turn with one call, and wait for its answer."""
        call = call_of(tool, arguments, ordinal=self.turns + 1, **fields)
        await self.turn(call)
        return await self.result(call)

    async def claims(self) -> list[Message]:
        return await self.bus.read(self.key.stream, [self.key.call("*")])

    async def all_acked(self) -> None:
        """Wait until the service has acknowledged every turn that is for it."""
        consumer = self._consumer

        async def is_done() -> bool:
            info = await self.bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {})
            if info["delivered"]["stream_seq"] < self._newest_seq:
                return False  # what is stored counts as pending a moment later only
            return not info["num_pending"] + info["num_ack_pending"]

        await until(is_done, "every turn was acknowledged")
