"""Where attachments are: in parts, under the hash of the whole, and last what is known of it.

    upload.{user}.{hash}.{n | about | for-…}   UPLOADS: for a day
    file.{user}.{hash}.{n | about}             FILES: as long as the log, once that names it

Whose it is stands in the subject, so nobody reaches another's, and erasing a person finds all.
A part is only ever replaced by the same bytes, and `about` is stored after them: who reads it,
finds the whole. Everything may be repeated.

A file is kept only when the record that names it is stored: what was refused leaves nothing. Until
then the upload tells where that would be (`Intent`), so that it is kept also if whoever
stored the record is gone (`unkept`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeVar

import msgspec

from .. import crash
from ..bus.bus import Bus, BusError
from ..contracts.events import Attachment
from ..errors import Unavailable
from .subjects import ABOUT, FOR, attachment_part

PART_BYTES: Final = 512 * 1024
T = TypeVar("T")
Kept = Literal["UPLOADS", "FILES"]
BOTH: Final[tuple[Kept, ...]] = ("FILES", "UPLOADS")


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record is about to name a file."""

    stream: str
    subject: str
    after: int
    """Sequence of the newest record there before; 0: there is none."""


async def upload(bus: Bus, user: str, about: Attachment, data: bytes) -> None:
    """Store a file for a day. Raises: Unavailable, BusError."""
    await _store(bus, "UPLOADS", user, about, data)


async def intend(bus: Bus, user: str, hash_: str, intent: Intent) -> None:
    """Note that a record is about to name a file that isn't kept yet.

    Raises:
        Unavailable, BusError: the broker can't tell.
    """
    part = f"{FOR}{hashlib.sha256(intent.subject.encode()).hexdigest()[:16]}"
    subject = attachment_part("UPLOADS", user, hash_, part)
    await bus.publish(subject, msgspec.json.encode(intent))


async def named(
    bus: Bus,
    user: str,
    files: Sequence[Attachment],
    place: tuple[str, str],
    record: Callable[[], Awaitable[T]],
) -> tuple[T, bool]:
    """Have `record` store what names files, and keep those; return its result, and whether all
    of them are kept now.

    Args:
        place: stream and subject of the record.

    Raises:
        Unavailable, BusError: the broker can't tell, and nothing is stored; and what `record`
            raises.
    """
    stream, subject = place
    intent = Intent(stream=stream, subject=subject, after=await bus.newest(stream, [subject]))
    for file in files:
        await intend(bus, user, file.hash, intent)
    crash.point("attachment.noted")
    stored = await record()
    crash.point("attachment.named")
    try:
        for file in files:
            await keep(bus, user, file.hash)
    except (Unavailable, BusError):
        return stored, False
    return stored, True


async def keep(bus: Bus, user: str, hash_: str) -> bool:
    """Keep a file for as long as the log, from now on; return whether it is there.

    Raises:
        InvalidInput: it is no hash.
        Unavailable, BusError: the broker can't tell.
    """
    about = await find(bus, user, hash_)
    data = None if about is None else await read(bus, user, about)
    if about is None or data is None:  # its day is over
        return False
    await _store(bus, "FILES", user, about, data)
    return True


async def is_kept(bus: Bus, user: str, hash_: str) -> bool:
    """Return whether a file outlives its day. Raises: as `keep`."""
    return await _about(bus, "FILES", user, hash_) is not None


async def find(bus: Bus, user: str, hash_: str) -> Attachment | None:
    """Return what is known of a person's file. Raises: Unavailable, BusError."""
    kept = await _about(bus, "FILES", user, hash_)
    return kept or await _about(bus, "UPLOADS", user, hash_)


async def read(bus: Bus, user: str, about: Attachment) -> bytes | None:
    """Return a file's bytes; None: they aren't there any more. Raises: as `keep`."""
    for stream in BOTH:
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


async def _store(bus: Bus, stream: Kept, user: str, about: Attachment, data: bytes) -> None:
    for n, begin in enumerate(range(0, len(data), PART_BYTES)):
        subject = attachment_part(stream, user, about.hash, str(n))
        await bus.publish(subject, data[begin : begin + PART_BYTES])
    crash.point("attachment.uploaded" if stream == "UPLOADS" else "attachment.copied")
    subject = attachment_part(stream, user, about.hash, ABOUT)
    await bus.publish(subject, msgspec.json.encode(about))
