"""Whether the broker's block files are whole: one that was cut ends in the middle of a record.

The broker takes what comes before for all there is, and says nothing of the rest. A kill or a power
cut may leave the last record of the newest block like that, which nobody was told to be stored; a
disk that lost more, or a copy that was broken off, looks the same, and must not pass in silence.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..words.amounts import count_of

_LENGTH: Final = struct.Struct("<I")
_HAS_HEADERS: Final = 1 << 31
_EMPTY: Final = 30
"""The least that a record takes: what stands before its subject, and the checksum."""


class CutBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block that ends in the middle of a record."""

    path: Path
    at: int
    """Where that record begins."""
    rest: int
    """What there is of it, in bytes."""

    @property
    def in_words(self) -> str:
        return (
            f"{self.path} ends in the middle of a record: its rest "
            f"({count_of(self.rest, 'byte')}) is lost, with all that came after"
        )


def newest_blocks(store: Path) -> Iterator[Path]:
    """Yield the block of each stream that is written to."""
    for folder in sorted(store.glob("jetstream/*/streams/*/msgs")):
        if blocks := sorted(folder.glob("*.blk"), key=lambda path: (len(path.name), path.name)):
            yield blocks[-1]


def cut_blocks(paths: Iterator[Path]) -> Iterator[CutBlock]:
    """Yield those that end in the middle of a record, now and when looked at once more: one that
    is written to meanwhile grows."""
    for path in paths:
        try:
            if (found := _cut(path)) is not None and _cut(path) == found:
                yield found
        except FileNotFoundError:  # the broker removed it meanwhile
            continue


def _cut(path: Path) -> CutBlock | None:
    with path.open("rb") as file:
        total = file.seek(0, 2)
        if not total:
            return None
        with mmap.mmap(file.fileno(), total, access=mmap.ACCESS_READ) as data:
            offset = 0
            while offset < total:
                size = _EMPTY
                if offset + _LENGTH.size <= total:
                    size = _LENGTH.unpack_from(data, offset)[0] & ~_HAS_HEADERS
                if size < _EMPTY or offset + size > total:
                    return CutBlock(path=path, at=offset, rest=total - offset)
                offset += size
    return None
