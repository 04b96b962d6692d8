"""How much of files a person may have: of those that the log names, and that nothing names yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ..bus.bus import Bus
from ..contracts import Attachment
from ..errors import InvalidInput
from ..topology import STREAMS
from . import store
from .subjects import ABOUT, attachment_part

UNNAMED_SHARE: Final = 4
"""A quarter of the room for uploads is the most that one can take from the others."""
UPLOADS_BYTES_MAX: Final = next(one.bytes_max for one in STREAMS if one.name == "UPLOADS")
KNOWN_MAX: Final = 100_000
"""Files whose size a replica remembers."""
AT_ONCE: Final = 64
MIB: Final = 1024**2


class Quota:
    """Asked before a file is stored. Two at once may exceed it by one of them."""

    def __init__(self, bus: Bus, bytes_max: int) -> None:
        """`bytes_max`: of all files of a person (`gateway.person_attachments_bytes_max`)."""
        self._bus = bus
        self._bytes_max = bytes_max
        self._sizes: dict[str, int] = {}

    async def check(self, user: str, file: Attachment) -> None:
        """Check that a person may have one more file; one that they have is no more.

        Raises:
            InvalidInput: `file`, and what is full.
            Unavailable, BusError: the broker can't tell.
        """
        kept, uploaded = await asyncio.gather(
            self._hashes("FILES", user), self._hashes("UPLOADS", user)
        )
        if file.hash in kept | uploaded:
            return
        unnamed = file.size + await self._total(user, uploaded - kept)
        if unnamed > (most := UPLOADS_BYTES_MAX // UNNAMED_SHARE):
            raise InvalidInput(
                "file",
                f"would make {_mib(unnamed)} that no message names yet; at most {_mib(most)}. "
                "What is named, or a day old, doesn't count",
            )
        total = unnamed + await self._total(user, kept)
        if total > self._bytes_max:
            raise InvalidInput(
                "file",
                f"would make {_mib(total)} of your files; at most {_mib(self._bytes_max)} are kept "
                "(gateway.person_attachments_bytes_max)",
            )

    async def _hashes(self, stream: store.Kept, user: str) -> set[str]:
        wanted = attachment_part(stream, user, "0" * 64, ABOUT).replace("0" * 64, "*")
        return {subject.split(".")[2] for subject in await self._bus.subjects(stream, wanted)}

    async def _total(self, user: str, hashes: Iterable[str]) -> int:
        unknown = [one for one in hashes if one not in self._sizes]
        if len(self._sizes) + len(unknown) > KNOWN_MAX:
            self._sizes.clear()
            unknown = list(hashes)
        for start in range(0, len(unknown), AT_ONCE):
            found = await asyncio.gather(
                *(store.find(self._bus, user, one) for one in unknown[start : start + AT_ONCE])
            )
            self._sizes |= {about.hash: about.size for about in found if about is not None}
        return sum(self._sizes.get(one, 0) for one in hashes)


def _mib(size: int) -> str:
    """Write a size, rounded up.

    >>> _mib(3 * MIB), _mib(1)
    ('3.0 MiB', '0.1 MiB')
    """
    return f"{-(-10 * size // MIB) / 10:.1f} MiB"
