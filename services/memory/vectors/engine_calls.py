"""What the service and the process of its vector engine say to each other, over two pipes.

A frame is four bytes of length, big endian, and MessagePack. Each request gets one answer, in
order.
"""

from __future__ import annotations

from typing import Final

import msgspec

from .filters import Conditions, Payload

LENGTH_BYTES: Final = 4
LOCKED: Final = 75
"""Exit code: another process uses the folder, and goes on to."""


class StoredPoint(msgspec.Struct, frozen=True, array_like=True):
    """A point as the engine stores it."""

    num: int
    vector: bytes
    payload: Payload


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Open what is there -> whether it is new. `is_anew`: whatever is there, don't even look."""

    embedder: str
    dimension: int
    is_anew: bool = False


class Upsert(msgspec.Struct, frozen=True, tag="upsert"):
    rows: list[StoredPoint]


class Search(msgspec.Struct, frozen=True, tag="search"):
    """-> pairs of a memory's number and its cosine, best first."""

    vector: bytes
    limit: int
    conditions: Conditions


class Count(msgspec.Struct, frozen=True, tag="count"):
    conditions: Conditions


class Flush(msgspec.Struct, frozen=True, tag="flush"):
    pass


class ForgetPoints(msgspec.Struct, frozen=True, tag="forget"):
    """Find what matches no more, and begin a copy of the rest. No conditions: forget everything."""

    conditions: Conditions


class CopyMore(msgspec.Struct, frozen=True, tag="copy_more"):
    """Copy some more -> whether all is copied. Apart, so that searches get their turn."""


class TakeOver(msgspec.Struct, frozen=True, tag="take_over"):
    """Put the copy in the place of the original."""


class ScrubMore(msgspec.Struct, frozen=True, tag="scrub_more"):
    """Overwrite some more of the original -> whether all is overwritten."""


Query = Search | Count | CopyMore | ScrubMore
Change = Upsert | Flush | ForgetPoints | TakeOver
Request = Open | Query | Change


class Done(msgspec.Struct, frozen=True, tag="done"):
    value: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: str


Reply = Done | Failed


def frame(message: Request | Reply) -> bytes:
    """Return a message as it goes over the pipe."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
