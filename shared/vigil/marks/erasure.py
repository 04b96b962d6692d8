"""The mark of a person who is being erased, and what is left of it: a hash and the time.

While the mark is set nothing of that person is taken in, thought about, fired or said, by any
service. It holds no name: services compare the hash of each name that they meet.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import Instant
from ..subjects import token_of

BUCKET: Final = "CONFIG"
PREFIX: Final = "erase."


class Erasure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far it is. With `done_at` it is a tombstone, and the name may be used anew."""

    started_at: Instant
    done_at: Instant | None = None

    @property
    def is_open(self) -> bool:
        return self.done_at is None


def hash_of(user: str) -> str:
    """Return what stands for a person's name where the name may not stand.

    >>> hash_of("ann") == hash_of("Ann")
    False
    """
    return token_of("erase", user)


async def find(bus: Bus, user: str) -> Erasure | None:
    """Return the mark or the tombstone of a person, if there is one."""
    entry = await KeyValue(bus, BUCKET).get(PREFIX + hash_of(user))
    return None if entry is None else msgspec.json.decode(entry.value, type=Erasure)


async def begin(bus: Bus, user: str, now: datetime) -> Erasure:
    """Set the mark, unless it is set. From here on the services refuse that person."""
    found = await find(bus, user)
    if found is not None and found.is_open:
        return found
    mark = Erasure(started_at=now)
    await _put(bus, user, mark)
    return mark


async def end(bus: Bus, user: str, mark: Erasure, now: datetime) -> Erasure:
    """Make a tombstone of the mark."""
    tombstone = msgspec.structs.replace(mark, done_at=now)
    await _put(bus, user, tombstone)
    return tombstone


async def _put(bus: Bus, user: str, mark: Erasure) -> None:
    await KeyValue(bus, BUCKET).put(PREFIX + hash_of(user), msgspec.json.encode(mark))


async def is_any_open(bus: Bus) -> bool:
    """Whether somebody is being erased at the moment."""
    marks = await bus.read(f"KV_{BUCKET}", [f"$KV.{BUCKET}.{PREFIX}>"])
    return any(msgspec.json.decode(m.data, type=Erasure).is_open for m in marks if m.data)
