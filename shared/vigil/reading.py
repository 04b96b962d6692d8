"""Reading what is stored now: a follower that knows where to stop.

A broker that stands alone tells the end with each message. In a cluster a consumer may sit on a
node that is behind, so the end is asked of the stream's leader, and a node that doesn't get there
is left for another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .message import Message

if TYPE_CHECKING:
    from .bus import Bus

QUIET_S: Final = 0.5
"""Without a message for so long, it's asked whether there is anything left."""


async def page(
    bus: Bus, stream: str, filters: Sequence[str], start: int, limit: int, bytes_max: int
) -> tuple[list[Message], bool]:
    """Do what :meth:`vigil.bus.Bus.page` promises, for as long as it takes."""
    end = await _newest(bus, stream, filters) if bus.is_cluster else None
    if end is not None and end < start:
        return [], False
    follower = await bus.follow(stream, filters, start)
    messages: list[Message] = []
    size = 0
    try:
        if end is None and follower.waiting == 0:
            return messages, False
        while True:
            message = await follower.next_within(QUIET_S)
            if message is None:
                # The one it would end on may be gone: is there anything left at all?
                after = messages[-1].seq + 1 if messages else start
                if await _is_nothing_after(bus, stream, filters, after):
                    return messages, False
                if bus.is_cluster:
                    follower.restart()
                continue
            messages.append(message)
            size += len(message.data)
            if _is_last(message, end):
                return messages, False
            if len(messages) == limit or 0 < bytes_max <= size:
                return messages, True
    finally:
        await follower.close()


def _is_last(message: Message, end: int | None) -> bool:
    return message.pending == 0 if end is None else message.seq >= end


async def _newest(bus: Bus, stream: str, filters: Sequence[str]) -> int:
    """Return the sequence of the newest message on `filters`, by the leader; 0: none."""
    found = await asyncio.gather(*(bus.get_last(stream, one) for one in filters))
    return max((message.seq for message in found if message is not None), default=0)


async def _is_nothing_after(bus: Bus, stream: str, filters: Sequence[str], seq: int) -> bool:
    if bus.is_cluster:
        return await _newest(bus, stream, filters) < seq
    probe = await bus.follow(stream, filters, seq)
    try:
        return probe.waiting == 0
    finally:
        await probe.close()
