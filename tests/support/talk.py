"""Talk to a session on the bus, and wait for what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.addressees import is_turn
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Control,
    ControlPayload,
    External,
    ExternalPayload,
    Receipt,
    Said,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_receipt,
    decode_said,
    decode_turn,
    encode,
)
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import SessionKey

T = TypeVar("T")
PATIENCE_S = 60.0


class Talk:
    """One session as the tests see it: everything in its log, as it grows."""

    def __init__(self, bus: Bus, key: SessionKey) -> None:
        self.bus = bus
        self.key = key
        self.log: list[Message] = []
        self.turns: list[Turn] = []
        self.said: list[Said] = []
        self.receipts: list[Receipt] = []
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, stack: Stack, key: str) -> Talk:
        talk = cls(await stack.bus("admin"), SessionKey.parse(key))
        talk._task = asyncio.create_task(talk._follow())
        return talk

    async def _follow(self) -> None:
        follower = await self.bus.follow(self.key.stream, [self.key.everything], 1)
        async for message in follower:
            self.take(message)

    def take(self, message: Message) -> None:
        """Add a record of the session, the next one of its log."""
        self._add(message)
        self._grown.set()

    def _add(self, message: Message) -> None:
        self.log.append(message)
        kind = message.subject.split(".")[4:6]
        if is_turn(message.subject):
            with contextlib.suppress(InvalidInput):
                self.turns.append(decode_turn(message.data))
        elif kind == ["out", "said"]:
            self.said.append(decode_said(message.data))
        elif kind[0] == "receipt":
            self.receipts.append(decode_receipt(message.data))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # ------------------------------------------------------------ say

    async def say(self, text: str, event_id: str | None = None, *, by: str = "") -> int:
        """Store a user message as the gateway does; returns its sequence."""
        event = UserMessage(
            id=event_id or str(uuid4()),
            session_key=str(self.key),
            created_at=datetime.now(UTC),
            payload=UserMessagePayload(text=text, is_keyed=event_id is not None, by=by),
        )
        return await self.store(self.key.in_user, encode(event), event.id)

    async def control(self, op: str, timer_id: str | None = None) -> int:
        payload = ControlPayload(op=op, timer_id=timer_id)  # type: ignore[arg-type]
        event = Control(
            id=str(uuid4()), session_key=str(self.key), created_at=datetime.now(UTC),
            payload=payload,
        )  # fmt: skip
        return await self.store(self.key.in_event("control"), encode(event), event.id)

    async def outside(self, content: str, event_id: str | None = None, **of: Any) -> int:
        """Store an event from outside as the gateway does; returns its sequence."""
        event = External(
            id=event_id or str(uuid4()), session_key=str(self.key), created_at=datetime.now(UTC),
            payload=ExternalPayload(source="hook:ci", content=content, **of),
        )  # fmt: skip
        return await self.store(self.key.in_event("external"), encode(event), event.id)

    async def store(self, subject: str, data: bytes, msg_id: str | None = None) -> int:
        """Publish until it is acknowledged, as a client that was told nothing would."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while True:
                try:
                    return (await self.bus.publish(subject, data, msg_id=msg_id)).seq
                except Unavailable:
                    await asyncio.sleep(next(pause_s))

    # ------------------------------------------------------------ what came of it

    @property
    def texts(self) -> list[str]:
        return [said.text for said in self.said]

    @property
    def notes(self) -> list[str]:
        return [note.code for turn in self.turns for note in turn.notes]

    async def until(self, condition: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
        """Wait until `condition` of the log is true; says what the log is if it never is."""
        try:
            async with asyncio.timeout(patience_s):
                while not (result := condition()):
                    self._grown.clear()
                    await self._grown.wait()
                return result
        except TimeoutError:
            shown = [f"{m.seq} {m.subject.split('.', 4)[4]}" for m in self.log[-20:]]
            outcomes = [(t.outcome, t.state.position) for t in self.turns[-10:]]
            raise AssertionError(f"still not so: {shown} {outcomes}") from None

    async def ended(self, seq: int) -> None:
        """Wait until the exchange of the event `seq` is over."""
        await self.until(lambda: any(_is_over(turn, seq) for turn in self.turns))


def _is_over(turn: Turn, seq: int) -> bool:
    is_done = turn.state.position >= seq and turn.state.loop is None
    return is_done and seq not in {q.seq for q in turn.state.queue}
