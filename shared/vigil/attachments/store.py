"""Where attachments are: in parts, under the hash of the whole, and last what is known of it.

    upload.{user}.{hash}.{n | about}   UPLOADS: for a day
    file.{user}.{hash}.{n | about}     FILES: for good, once a message names it

Whose it is stands in the subject, so nobody reaches another's, and erasing a person finds all.
A part is only ever replaced by the same bytes, and `about` is stored after them: who reads it,
finds the whole. Everything may be repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final, Literal

import msgspec

from ..bus.bus import Bus
from ..contracts.events import Attachment
from .subjects import ABOUT, attachment_part

PART_BYTES: Final = 512 * 1024
Kept = Literal["UPLOADS", "FILES"]
BOTH: Final[tuple[Kept, ...]] = ("FILES", "UPLOADS")


async def upload(bus: Bus, user: str, about: Attachment, data: bytes) -> None:
    """Store a file for a day. Raises: Unavailable, BusError."""
    for n, begin in enumerate(range(0, len(data), PART_BYTES)):
        subject = attachment_part("UPLOADS", user, about.hash, str(n))
        await bus.publish(subject, data[begin : begin + PART_BYTES])
    await _tell(bus, "UPLOADS", user, about)


async def keep(bus: Bus, user: str, hash_: str) -> Attachment | None:
    """Keep a file for good; None: the person has none of that hash.

    Raises:
        InvalidInput: it is no hash.
        Unavailable, BusError: the broker can't tell.
    """
    if kept := await _about(bus, "FILES", user, hash_):
        return kept
    about = await _about(bus, "UPLOADS", user, hash_)
    if about is None:
        return None
    for n in range(_parts(about)):
        found = await bus.get_last("UPLOADS", attachment_part("UPLOADS", user, hash_, str(n)))
        if found is None:  # its day is over
            return None
        await bus.publish(attachment_part("FILES", user, hash_, str(n)), found.data)
    await _tell(bus, "FILES", user, about)
    return about


async def find(bus: Bus, user: str, hash_: str) -> Attachment | None:
    """Return what is known of a person's file. Raises: Unavailable, BusError."""
    kept = await _about(bus, "FILES", user, hash_)
    return kept or await _about(bus, "UPLOADS", user, hash_)


async def read(bus: Bus, user: str, about: Attachment, *, only: Kept | None = None) -> bytes | None:
    """Return a file's bytes; None: they aren't there any more.

    Args:
        only: the stream that it is looked for in; None: in both.

    Raises:
        InvalidInput: its hash is none.
        Unavailable, BusError: the broker can't tell.
    """
    for stream in (only,) if only else BOTH:
        names = [attachment_part(stream, user, about.hash, str(n)) for n in range(_parts(about))]
        found = await asyncio.gather(*(bus.get_last(stream, name) for name in names))
        data = b"".join(one.data for one in found if one is not None)
        if hashlib.sha256(data).hexdigest() == about.hash:
            return data
    return None


def _parts(about: Attachment) -> int:
    return -(-about.size // PART_BYTES)


async def _about(bus: Bus, stream: Kept, user: str, hash_: str) -> Attachment | None:
    found = await bus.get_last(stream, attachment_part(stream, user, hash_, ABOUT))
    return msgspec.json.decode(found.data, type=Attachment) if found else None


async def _tell(bus: Bus, stream: Kept, user: str, about: Attachment) -> None:
    subject = attachment_part(stream, user, about.hash, ABOUT)
    await bus.publish(subject, msgspec.json.encode(about))
