"""What the log holds of one person's conversations, while services and broker come and go."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    SendMessage,
    UserMessage,
    decode_event,
    decode_receipt,
    decode_said,
    decode_turn,
)
from vigil.errors import VigilError

SETTLED_S: Final = 120.0


def toml_of(channel: str, values: dict[str, Any]) -> str:
    """Return a channel's section as a file has it."""
    lines = (f"{key} = {json.dumps(value)}" for key, value in values.items())
    return "\n".join((f"[channels.{channel}]", *lines, ""))


async def records(bus: Bus, subject: str) -> list[Message]:
    while True:
        try:
            return await bus.read("SESSIONS", [f"session.vigil.ann.*.{subject}"])
        except VigilError:
            await asyncio.sleep(0.1)


async def texts_heard(bus: Bus) -> list[str]:
    events = [decode_event(one.data) for one in await records(bus, "in.said.user")]
    return [event.payload.text for event in events if isinstance(event, UserMessage)]


async def all_settled(bus: Bus) -> dict[str, str]:
    """Wait until what was heard is answered and each order has its receipt; returns how each ended,
    by effect."""
    async with asyncio.timeout(SETTLED_S):
        while True:
            heard = {decode_event(one.data).id for one in await records(bus, "in.said.user")}
            turns = [decode_turn(one.data) for one in await records(bus, "*")]
            said = {decode_said(one.data).id for one in await records(bus, "out.said.*")}
            ends = [decode_receipt(one.data) for one in await records(bus, "receipt.*")]
            found = {one.effect_id: one.outcome for one in ends}
            is_answered = heard <= {id_ for one in turns for id_ in one.ended}
            last = turns[-1].state if turns else None
            is_idle = last is None or (last.loop is None and not last.queue)
            # What a turn says is stored after it.
            meant = {
                effect.id
                for one in turns
                for effect in one.effects
                if isinstance(effect, SendMessage)
            }
            is_over = is_answered and is_idle and meant | said <= set(found)
            if is_over:
                return found
            await asyncio.sleep(0.1)
