"""Whether a person has done with the console's first page: then it doesn't come by itself any more.

An entry of the bucket CONFIG for each, by their hashed name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ..bus.kv import KeyValue
from ..contracts import Instant
from ..subjects import token_of

if TYPE_CHECKING:
    from ..bus.bus import Bus

BUCKET: Final = "CONFIG"
PREFIX: Final = "first."


class FirstPageDone(msgspec.Struct, frozen=True, kw_only=True):
    """When they went on from it."""

    at: Instant


def _key_of(user: str) -> str:
    return f"{PREFIX}{token_of('person', user)}"


async def is_done(bus: Bus, user: str) -> bool:
    """Whether a person has done with it. Raises: Unavailable."""
    return await KeyValue(bus, BUCKET).get(_key_of(user)) is not None


async def note(bus: Bus, user: str, at: Instant) -> None:
    """Note that they have. Raises: Unavailable, BusError."""
    await KeyValue(bus, BUCKET).put(_key_of(user), msgspec.json.encode(FirstPageDone(at=at)))


async def forget(bus: Bus, user: str) -> None:
    """Remove what is noted of a person. Raises: Unavailable, BusError."""
    await KeyValue(bus, BUCKET).delete(_key_of(user))
