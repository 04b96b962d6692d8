"""How far a person has read each conversation: it moves forward only, over all replicas.

It stands in the bucket of cursors, by hashes alone: what a bucket replaces stays on the disk for a
while, and names must not (X-8). A mark that is lost makes a conversation unread again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyEntry, KeyValue
from vigil.errors import WrongLastSequence
from vigil.subjects import SessionKey, token_of

TRIES_MAX: Final = 5


def key_of(reader: str, session: SessionKey) -> str:
    """Return where the mark stands: no client's cursor has three parts."""
    return f"{token_of(reader)}.{token_of(str(session), '', 'read')}"


class ReadMarks:
    """The marks of everybody. Raises, from each method: Unavailable."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = KeyValue(bus, "CURSORS")

    async def of(self, reader: str, session: SessionKey) -> int:
        """Return the sequence of the newest message that they read; 0: none."""
        return _seq_in(await self._bucket.get(key_of(reader, session)))

    async def move(self, reader: str, session: SessionKey, seq: int) -> int:
        """Note that they read up to `seq`; return up to where they have by now."""
        key = key_of(reader, session)
        for _ in range(TRIES_MAX):
            entry = await self._bucket.get(key)
            known = _seq_in(entry)
            if seq <= known:
                return known
            try:
                await self._bucket.put(
                    key, b"%d" % seq, expect=0 if entry is None else entry.revision
                )
            except WrongLastSequence:
                continue
            return seq
        return await self.of(reader, session)


def _seq_in(entry: KeyEntry | None) -> int:
    try:
        return 0 if entry is None else max(0, msgspec.json.decode(entry.value, type=int))
    except msgspec.MsgspecError:
        return 0
