"""A large log in a minute: the records that conversations leave, written without having them.

What is written is what a user message, its turn and its answer leave, by the contracts' own codecs
and under the subjects that services use. Consumers are moved behind it and signals removed, as
if all of it had been worked off.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from services.cortex.session.log import headers_of, letters_of
from services.delivery import decide as delivery
from vigil.broker.process import Broker
from vigil.broker.provision import provision
from vigil.bus.batches import last_sequence
from vigil.bus.bus import Bus
from vigil.contracts import (
    Cause,
    Row,
    SendMessage,
    SendPayload,
    State,
    TextBlock,
    Turn,
    Usage,
    UserMessage,
    UserMessagePayload,
    effect_id,
    encode,
)
from vigil.layout import name_of
from vigil.observe import trace
from vigil.settings.sections import Model, Nats
from vigil.subjects import SessionKey
from vigil.topology import CONSUMERS

CONFIRMED_EVERY: Final = 500
"""Records that are on their way unanswered: the broker drops what it can't queue."""
STORED_S: Final = 60.0
ROWS_A_TURN: Final = 2
HISTORY_TURNS: Final = Model().history_rows // ROWS_A_TURN
LONG_AGO: Final = timedelta(days=20)
"""When it was said: longer ago than signals are made of it."""


class Writer:
    """Appends to the log of a broker that nobody else writes to."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._sequences: dict[str, int] = {}
        self.records = 0
        self.bytes = 0
        self._at = datetime.now(UTC) - LONG_AGO

    async def converse(self, key: SessionKey, turns: int, text_bytes: int = 40) -> int:
        """Write a conversation of so many turns, with texts of that size; return where it ends."""
        text = ("word " * (text_bytes // 5 + 1))[:text_bytes]
        state, kept = State(), deque[int](maxlen=HISTORY_TURNS)
        for _ in range(turns):
            state = await self._exchange(key, state, kept, text)
        return self._sequences[await self._bus.log_of(key)]

    async def _exchange(self, key: SessionKey, state: State, kept: deque[int], text: str) -> State:
        event = UserMessage(
            id=str(uuid4()), session_key=str(key), created_at=self._at,
            payload=UserMessagePayload(text=text),
        )  # fmt: skip
        traced = {trace.HEADER: trace.new()}
        position = await self._put(key, key.in_user, encode(event), traced)
        kept.append(position + 1)
        turn = _turn(key, event, position, state, kept[0])
        subject = key.turn_for(letters_of(turn))
        headers = headers_of(turn, traced[trace.HEADER])
        seq = await self._put(key, subject, encode(turn), headers)
        (send,) = delivery.sends_of(turn)
        said = delivery.said(key, send, turn_seq=seq, now=self._at)
        await self._put(key, key.out_said(send.id), encode(said), traced)
        return turn.state

    async def _put(
        self, key: SessionKey, subject: str, data: bytes, headers: dict[str, str]
    ) -> int:
        """Publish one record; return the sequence that it gets."""
        stream = await self._bus.log_of(key)
        if stream not in self._sequences:
            self._sequences[stream] = await last_sequence(self._bus, stream)
        self._sequences[stream] += 1
        expected = self._sequences[stream]
        self.records += 1
        self.bytes += len(data) + len(subject)
        if self.records % CONFIRMED_EVERY:
            stored_as = (await self._bus.layout()).stored(subject)
            await self._bus.connection.publish(stored_as, data, headers=headers)
        else:
            stored = (await self._bus.publish(subject, data, headers, timeout=60.0)).seq
            assert stored == expected, f"{stream} has {stored} where {expected} was to be"
        return expected

    async def finish(self) -> None:
        """Make sure that all of it is stored, and worked off: no signal tells how far the projector
        was, so it begins with what is new, as all that was written is too long ago."""
        await self._bus.api("STREAM.PURGE.SIGNALS", {}, 60.0)
        for stream, expected in self._sequences.items():
            async with asyncio.timeout(STORED_S):
                while await last_sequence(self._bus, stream) < expected:
                    await asyncio.sleep(0.05)
            for consumer in CONSUMERS:
                if consumer.stream == name_of(stream):
                    request = {"seq": expected + 1}
                    await self._bus.api(f"CONSUMER.RESET.{stream}.{consumer.name}", request, 60.0)


def _turn(key: SessionKey, event: UserMessage, position: int, before: State, oldest: int) -> Turn:
    ordinal, text = before.turns + 1, event.payload.text
    payload = SendPayload(
        text=text, caused_by=event.id, fence=position, previous=before.last_send
    )  # fmt: skip
    send = SendMessage(
        id=effect_id(str(key), position, ordinal, "send_message", payload, ""),
        ordinal=ordinal, payload=payload,
    )  # fmt: skip
    state = State(
        position=position, turns=ordinal, effects=before.effects + 1, fence=position,
        last_send=send.id, history_from=oldest,
    )  # fmt: skip
    blocks, at = (TextBlock(text=text),), event.created_at
    return Turn(
        id=str(uuid4()), session_key=str(key), ordinal=ordinal, outcome="answered", state=state,
        event=Cause(id=event.id, seq=position, type="user_message"), created_at=at,
        rows=(Row(role="user", source="person", blocks=blocks, at=at),
              Row(role="assistant", source="agent", blocks=blocks, at=at)),
        effects=(send,), usage=(Usage(model="rehearsal", input_tokens=10, output_tokens=10),),
        ended=(event.id,),
    )  # fmt: skip


@contextlib.asynccontextmanager
async def written(home: Path, max_file_bytes: int = 0) -> AsyncIterator[Writer]:
    """Start the broker of a home, yield a writer, and end the broker when all is stored.

    Args:
        max_file_bytes: of its storage, if it's to be more than it is by default.
    """
    home.mkdir(parents=True, exist_ok=True)
    bytes_max = max(max_file_bytes, Nats().max_file_bytes)
    broker = Broker(Nats(sync="default", max_file_bytes=bytes_max), home=home)
    await broker.start()
    try:
        bus = await broker.admin()
        await provision(bus)
        writer = Writer(bus)
        yield writer
        await writer.finish()
        await bus.close()
    finally:
        await broker.stop()
