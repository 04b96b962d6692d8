"""Reading the newest entry of each entity on the board."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from ..bus.bus import Bus, Message
from ..errors import Unavailable
from ..subjects import Scope, board_of

STREAM: Final = "BOARD"
READ_S: Final = 30.0
QUIET_S: Final = 0.5
"""Without an entry for so long, it's asked whether there is anything left."""


async def last_of(bus: Bus, whose: Iterable[Scope], kind: str, id_: str) -> Message | None:
    """Return the newest entry of an entity, of the first of them who has it.

    Args:
        id_: checked: it becomes a part of a subject.
    """
    for one in whose:
        message = await bus.get_last(STREAM, f"{board_of(one, kind).removesuffix('*')}{id_}")
        if message is not None:
            return message
    return None


async def newest(bus: Bus, where: str) -> AsyncGenerator[Message]:
    """Yield the newest entry of each subject that matches, in the order in which they were written.

    A follower that began again brings some twice.

    Raises:
        Unavailable: the broker is away, or all took longer than 30 s.
    """
    try:
        async with asyncio.timeout(READ_S), aclosing(_entries(bus, where)) as entries:
            async for message in entries:
                yield message
    except TimeoutError as error:
        raise Unavailable(f"{STREAM}: reading took longer than {READ_S:g} s") from error


async def _entries(bus: Bus, where: str) -> AsyncGenerator[Message]:
    last = await bus.get_last(STREAM, where)
    if last is None:
        return
    follower = await bus.follow(STREAM, [where], 0)
    try:
        seq, is_over = 0, False
        while not is_over:
            message = await follower.next_within(QUIET_S)
            if message is None:
                is_over = await bus.get_next(STREAM, where, seq + 1) is None
                if not is_over:
                    follower.restart()
                continue
            seq = message.seq
            is_over = message.pending == 0 and seq >= last.seq
            yield message
    finally:
        await follower.close()
