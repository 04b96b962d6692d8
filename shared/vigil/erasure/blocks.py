"""Overwriting dead records in the broker's own files, while it is stopped.

The broker overwrites what is deleted by its sequence, and leaves the bytes of what it removes by
itself (for its age, or when a crash came between a delete and its overwriting) in a block for as
long as the block has others to keep. Nothing in its interface reaches those. So, as the last step
of erasing a person, and only with the server stopped and no record of theirs alive, each record
that lies under a subject of theirs is replaced by what the server itself writes for an erased one:
the same length, a mark, random bytes, a checksum.

A record is touched only if its checksum proves that its form is the one known here; otherwise it
is left alone, and the scan that follows tells of it.

    length (4, the highest bit: has headers)  sequence (8, the highest bit: erased)  time (8)
    length of the subject (2)  subject  [length of the headers (4)  headers]  data  checksum (8)

The checksum is HighwayHash-64 of sequence, time, subject, headers and data, with the SHA-256 of
`{stream}-{block}` as key (nats-server 2.15.1; the algorithm: Alakuijala, Cox, Wassenberg, 2016).
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..subjects import check_part
from ..teams import TEAM
from .theirs import PART, subjects_of, subjects_of_anybody

HEADER: Final = struct.Struct("<IQQH")
CHECKSUM_BYTES: Final = 8
EMPTY: Final = HEADER.size + CHECKSUM_BYTES
HAS_HEADERS: Final = 1 << 31
ERASED: Final = 1 << 63
_64: Final = (1 << 64) - 1
_32: Final = (1 << 32) - 1


class BlockRecord(msgspec.Struct, frozen=True):
    """A record of a block: where it is, and its bytes."""

    offset: int
    data: bytes

    @property
    def seq(self) -> int:
        return int(HEADER.unpack_from(self.data)[1])

    @property
    def subject(self) -> bytes:
        length = HEADER.unpack_from(self.data)[3]
        return self.data[HEADER.size : HEADER.size + length]

    def is_sound(self, key: bytes) -> bool:
        """Whether it has the form that we know."""
        size, _, _, length = HEADER.unpack_from(self.data)
        body = self.data[HEADER.size + length : -CHECKSUM_BYTES]
        if size & HAS_HEADERS:
            body = body[4:]  # the length of the headers isn't part of what is hashed
        hashed = self.data[4:20] + self.subject + body
        return highway_hash_64(key, hashed) == self.data[-CHECKSUM_BYTES:]

    def erased(self, key: bytes, filling: bytes) -> bytes:
        """Return what the server writes in its place; `filling`: random, of the inner length."""
        head = HEADER.pack(len(self.data), self.seq | ERASED, 0, 0)
        return head + filling + highway_hash_64(key, head[4:20] + filling)


def _in_shared(user: str) -> re.Pattern[bytes]:
    """Return what matches a record of a memory that a team shares if the person wrote it."""
    name = re.escape(check_part("user", user))
    by = rf'"by":"(?:user:{name}"|session:{name}:)'
    return re.compile(rf"memory\.{PART}\.{TEAM}\..*{by}".encode(), re.DOTALL)


_OF_ANYBODY: Final = subjects_of_anybody()


def is_of_another(record: BlockRecord, key: bytes, user: str) -> bool:
    """Whether a sound record lies under a subject of somebody else's."""
    is_ours = subjects_of(user).fullmatch(record.subject)
    return not is_ours and bool(_OF_ANYBODY.fullmatch(record.subject)) and record.is_sound(key)


def mend(store: Path, user: str) -> int:
    """Overwrite the person's records in every block under `store`; return how many there were.

    The server must be stopped, and nothing of the person's may be alive.
    """
    pattern, shared = subjects_of(user), _in_shared(user)
    count = 0
    for path in sorted(store.rglob("*.blk")):
        key = key_of(path)
        theirs = [
            r
            for r in records(path)
            if pattern.fullmatch(r.subject) or shared.match(r.data, HEADER.size)
        ]
        found = [r for r in theirs if r.is_sound(key)]
        if found:
            _overwrite(path, found, key)
            count += len(found)
    return count


def key_of(block: Path) -> bytes:
    """Return the key of a block's checksums."""
    return hashlib.sha256(f"{block.parts[-3]}-{block.stem}".encode()).digest()


def records(path: Path) -> Iterator[BlockRecord]:
    """Yield the records of a block that aren't erased; ends where the form isn't known."""
    data, offset = path.read_bytes(), 0
    while offset + EMPTY <= len(data):
        size = HEADER.unpack_from(data, offset)[0] & ~HAS_HEADERS
        if size < EMPTY or offset + size > len(data):
            return
        record = BlockRecord(offset, data[offset : offset + size])
        if not record.seq & ERASED:
            yield record
        offset += size


def _overwrite(path: Path, found: list[BlockRecord], key: bytes) -> None:
    with path.open("r+b") as file:
        for record in found:
            file.seek(record.offset)
            file.write(record.erased(key, os.urandom(len(record.data) - EMPTY)))
        file.flush()
        os.fsync(file.fileno())


# ---------------------------------------------------------------- HighwayHash-64

_INIT_0: Final = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_INIT_1: Final = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)


def highway_hash_64(key: bytes, data: bytes) -> bytes:
    """Return the hash of `data` under a key of 32 bytes, as 8 bytes, the lowest first."""
    state = _Highway(key)
    whole = len(data) - len(data) % 32
    for offset in range(0, whole, 32):
        state.update(struct.unpack_from("<4Q", data, offset))
    if whole < len(data):
        state.update_rest(data[whole:])
    for _ in range(4):
        state.update(tuple(_halves_swapped(state.v0[n]) for n in (2, 3, 0, 1)))
    total = state.v0[0] + state.v1[0] + state.mul0[0] + state.mul1[0]
    return struct.pack("<Q", total & _64)


def _halves_swapped(x: int) -> int:
    return (x >> 32) | (x << 32) & _64


class _Highway:
    """The hash's state: four vectors of four numbers of 64 bits."""

    def __init__(self, key: bytes) -> None:
        keys = struct.unpack("<4Q", key)
        self.mul0, self.mul1 = list(_INIT_0), list(_INIT_1)
        self.v0 = [i ^ k for i, k in zip(_INIT_0, keys, strict=True)]
        self.v1 = [i ^ _halves_swapped(k) for i, k in zip(_INIT_1, keys, strict=True)]

    def update(self, lanes: tuple[int, ...]) -> None:
        v0, v1, mul0, mul1 = self.v0, self.v1, self.mul0, self.mul1
        for n in range(4):
            v1[n] = (v1[n] + mul0[n] + lanes[n]) & _64
            mul0[n] ^= (v1[n] & _32) * (v0[n] >> 32)
            v0[n] = (v0[n] + mul1[n]) & _64
            mul1[n] ^= (v0[n] & _32) * (v1[n] >> 32)
        for to, source in ((v0, v1), (v1, v0)):
            for n in (0, 2):
                low, high = _zipped(source[n], source[n + 1])
                to[n] = (to[n] + low) & _64
                to[n + 1] = (to[n + 1] + high) & _64

    def update_rest(self, rest: bytes) -> None:
        """Take in the last 1 to 31 bytes."""
        size = len(rest)
        self.v0 = [(v + (size << 32) + size) & _64 for v in self.v0]
        self.v1 = [_halves_rotated(v, size) for v in self.v1]
        whole, tail = rest[: size & ~3], rest[size & ~3 :]
        packet = bytearray(whole.ljust(32, b"\0"))
        if size & 16:
            packet[28:32] = rest[size - 4 : size]
        elif tail:
            packet[16], packet[17], packet[18] = tail[0], tail[len(tail) >> 1], tail[-1]
        self.update(struct.unpack("<4Q", packet))


def _halves_rotated(x: int, count: int) -> int:
    """Rotate both halves of 32 bits to the left."""

    def rotated(half: int) -> int:
        return ((half << count) | (half >> (32 - count))) & _32

    return rotated(x >> 32) << 32 | rotated(x & _32)


_LOW: Final = ((0, 3), (1, 12), (0, 2), (0, 5), (1, 14), (0, 1), (1, 15), (0, 0))
_HIGH: Final = ((1, 11), (0, 4), (1, 10), (1, 13), (1, 9), (0, 6), (1, 8), (0, 7))


def _zipped(low: int, high: int) -> tuple[int, int]:
    """Mix the 16 bytes of two numbers: a fixed permutation."""
    data = struct.pack("<QQ", low, high)
    return _picked(data, _LOW), _picked(data, _HIGH)


def _picked(data: bytes, places: tuple[tuple[int, int], ...]) -> int:
    return int.from_bytes(bytes(data[place] for _, place in places), "little")
