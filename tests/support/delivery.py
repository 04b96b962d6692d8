"""What the cortex and the gateway would write, written by hand: user messages and turns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil import topology
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Receipt,
    Said,
    SendMessage,
    SendPayload,
    State,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_receipt,
    decode_said,
    effect_id,
    encode,
)
from vigil.observe import trace
from vigil.subjects import SessionKey

STREAM: Final = "SESSIONS"
AT: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def until(
    condition: Callable[[], Awaitable[bool]], *, within_s: float = 20.0, what: str = ""
) -> None:
    """Poll until `condition` holds; fail after `within_s` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    pause_s = pauses()
    while not await condition():
        assert loop.time() < deadline, f"not within {within_s} s: {what or condition}"
        await asyncio.sleep(next(pause_s))


def send_of(
    key: SessionKey,
    ordinal: int,
    *,
    fence: int,
    previous: str | None = None,
    is_autonomous: bool = False,
    text: str = "",
    channel: str = "socket",
) -> SendMessage:
    """Build a send as the core would; an autonomous one is voidable."""
    payload = SendPayload(
        text=text or f"message {ordinal}",
        caused_by=f"event-{fence}",
        fence=fence,
        previous=previous,
        is_autonomous=is_autonomous,
        is_voidable=is_autonomous,
        channel=channel,
    )
    id_ = effect_id(str(key), fence, ordinal, "send_message", payload, channel)
    return SendMessage(id=id_, ordinal=ordinal, payload=payload)


class Conversation:
    """One session, its person and its cortex played by a test."""

    def __init__(self, bus: Bus, key: SessionKey) -> None:
        self.bus = bus
        self.key = key
        self.fence = 0
        self.previous: str | None = None
        self.ordinal = 0

    async def user(self, text: str = "hello") -> int:
        """Store a user message, and fold it: later sends have it as their fence."""
        message = UserMessage(
            id=f"u{self.ordinal}-{text}",
            session_key=str(self.key),
            created_at=AT,
            payload=UserMessagePayload(text=text),
        )
        self.fence = (await self.bus.publish(self.key.in_user, encode(message))).seq
        return self.fence

    def send(self, *, is_autonomous: bool = False, channel: str = "socket") -> SendMessage:
        """Decide the next send of the session's chain."""
        self.ordinal += 1
        send = send_of(
            self.key,
            self.ordinal,
            fence=self.fence,
            previous=self.previous,
            is_autonomous=is_autonomous,
            channel=channel,
        )
        self.previous = send.id
        return send

    def encoded(self, *sends: SendMessage) -> bytes:
        """Encode a turn that decided `sends`."""
        turn = Turn(
            id=f"turn-{self.ordinal}",
            session_key=str(self.key),
            ordinal=self.ordinal,
            event=None,
            outcome="answered",
            state=State(position=self.fence, fence=self.fence, last_send=self.previous),
            created_at=AT,
            effects=sends,
        )
        return encode(turn)

    async def turn(self, *sends: SendMessage, letters: str = "s") -> int:
        """Commit a turn, for the services with these letters."""
        subject, headers = self.key.turn_for(letters), {trace.HEADER: trace.new()}
        return (await self.bus.publish(subject, self.encoded(*sends), headers)).seq

    async def old_turn(self, *sends: SendMessage, header: str | None = "s") -> int:
        """Commit a turn as older versions did; `header` None leaves ``Vigil-Effects`` away."""
        headers = {trace.HEADER: trace.new()}
        if header is not None:
            headers["Vigil-Effects"] = header
        return (await self.bus.publish(self.key.turn, self.encoded(*sends), headers)).seq

    async def message(self, seq: int, *, delivered: int = 1) -> Message:
        """Read a stored turn as a consumer would deliver it."""
        found = await self.bus.get(STREAM, seq)
        assert found is not None
        return Message(found.subject, found.data, found.headers, found.seq, delivered)

    async def said(self) -> list[Said]:
        """Return what was said, in the order of the transcript."""
        found = await self.bus.read(STREAM, [self.key.out_all])
        return [decode_said(message.data) for message in found]

    async def said_ids(self) -> list[str]:
        return [said.id for said in await self.said()]

    async def receipts(self) -> list[Receipt]:
        found = await self.bus.read(STREAM, [self.key.receipts])
        return [decode_receipt(message.data) for message in found]

    async def transcript(self) -> list[str]:
        """Return "user" or the effect id, in order."""
        found = await self.bus.read(STREAM, [self.key.transcript])
        return [message.subject.rpartition(".")[2] for message in found]

    async def settled(self, *sends: SendMessage, within_s: float = 20.0) -> None:
        """Wait until each of `sends` is said or has a receipt."""

        async def all_are() -> bool:
            done = set(await self.said_ids()) | {r.effect_id for r in await self.receipts()}
            return done >= {send.id for send in sends}

        await until(all_are, within_s=within_s, what=f"{len(sends)} sends settled")


def conversation(bus: Bus, thread: str = "t1", user: str = "ann") -> Conversation:
    """Start a session of its own."""
    return Conversation(bus, SessionKey.of(user, "vigil", thread))


async def all_acked(bus: Bus, *, within_s: float = 20.0) -> None:
    """Wait until delivery has acknowledged every turn."""

    async def is_idle() -> bool:
        info = await bus.api(f"CONSUMER.INFO.{STREAM}.delivery-turns", {})
        return bool(info["num_pending"] == 0 and info["num_ack_pending"] == 0)

    await until(is_idle, within_s=within_s, what="all turns acknowledged")


async def has_unacked(bus: Bus, count: int) -> bool:
    """Tell whether that many turns are delivered and not acknowledged."""
    info = await bus.api(f"CONSUMER.INFO.{STREAM}.delivery-turns", {})
    return bool(info["num_ack_pending"] == count)


async def redeliver(bus: Bus, turns: Sequence[int], *, name: str = "delivery-turns") -> None:
    """Make a durable consumer deliver from the first of `turns` on again."""
    config = (await bus.api(f"CONSUMER.INFO.{STREAM}.{name}", {}))["config"]
    await bus.api(f"CONSUMER.DELETE.{STREAM}.{name}", {})
    config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": min(turns)}
    await bus.api(
        f"CONSUMER.DURABLE.CREATE.{STREAM}.{name}", {"stream_name": STREAM, "config": config}
    )


@contextlib.asynccontextmanager
async def held(
    stack: Stack, talk: Conversation, turn: int, *, delay_s: float
) -> AsyncIterator[None]:
    """Take the oldest turn away from delivery; it comes `delay_s` seconds after the block.

    Start with no replica running and `turn` the first that is stored.
    """
    # A connection of its own: only closing it ends the request for more turns.
    bus = await stack.bus("admin")
    message = await anext(await bus.pull(topology.DELIVERY_TURNS))
    assert message.seq == turn
    await bus.close()

    async def is_gone() -> bool:
        info = await talk.bus.api(f"CONSUMER.INFO.{STREAM}.delivery-turns", {})
        return bool(info["num_waiting"] == 0)

    # The broker learns of the closed connection a moment later, and would deliver into it.
    await until(is_gone, what="the request for more turns is gone")
    yield
    await talk.bus.nak(message, delay_s)
