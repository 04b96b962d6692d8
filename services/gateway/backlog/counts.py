"""Counting messages of a session without reading them.

A consumer tells at creation how many messages match from a sequence on. It's made for that
answer alone: nothing is delivered, and it goes away by itself.
"""

from __future__ import annotations

import asyncio
import secrets

import msgspec

from vigil.bus.bus import Bus
from vigil.topology import SECOND_NS


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages of a session are read."""

    after: int | None = None
    """Those with a higher sequence; None: the newest."""
    before: int = 0
    """The newest with a lower sequence; 0: of all."""
    limit: int
    """So many at most."""


async def start_of(bus: Bus, stream: str, filter_subject: str, stretch: Stretch) -> int:
    """Return the sequence that a part begins at.

    Raises:
        BusError, Unavailable: the broker can't tell.
    """
    if stretch.after is not None:
        return stretch.after + 1
    return await start_of_newest(bus, stream, filter_subject, stretch.limit, stretch.before)


async def count(bus: Bus, stream: str, filter_subject: str, start: int) -> int:
    """Return how many messages on `filter_subject` have a sequence of at least `start`.

    Raises:
        BusError, Unavailable: the broker can't tell.
    """
    stream, (filter_subject,) = await bus.locate(stream, [filter_subject])
    name = f"count{secrets.token_hex(8)}"
    info = await bus.api(
        f"CONSUMER.CREATE.{stream}.{name}.{filter_subject}",
        {
            "stream_name": stream,
            "action": "create",
            "config": {
                "name": name,
                "filter_subject": filter_subject,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": max(start, 1),
                "ack_policy": "none",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": 5 * SECOND_NS,
            },
        },
    )
    await bus.send(f"$JS.API.CONSUMER.DELETE.{stream}.{name}", b"")
    return int(info["num_pending"])


async def start_of_newest(
    bus: Bus, stream: str, filter_subject: str, limit: int, before: int = 0
) -> int:
    """Return a sequence from which on at most `limit` messages match: the newest ones.

    Goes back from the end in growing steps, then halves: the newest of a log that is theirs alone
    are found at once, those of a few among many in about twice log2(last sequence) questions.

    Args:
        before: the newest of those with a lower sequence; 0: of all.
    """
    if before:
        limit += await count(bus, stream, filter_subject, before)
    total, newest = await asyncio.gather(
        count(bus, stream, filter_subject, 1), bus.get_last(stream, filter_subject)
    )
    if total <= limit:
        return 1
    too_many, few, step = 1, before or (newest.seq if newest else 1) + 1, limit
    while few - too_many > 1:
        middle = max(few - step, (too_many + few) // 2)
        found = await count(bus, stream, filter_subject, middle)
        if found == limit:
            return middle
        if found > limit:
            too_many = middle
        else:
            few, step = middle, 2 * step
    return few
