"""Where each client of a session is: the last message it acknowledged (SPEC S-10).

Acknowledgements come often and are cheap to lose (a message is then sent again), so they are
written behind: at most one write every half second for a client, and one when it leaves. A
cursor only moves forward, also when two gateways write it.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus, BusError
from vigil.bus.kv import KeyValue
from vigil.errors import Unavailable, WrongLastSequence
from vigil.subjects import SessionKey, token_of

log = structlog.get_logger("vigil.gateway")

WRITE_INTERVAL_S: Final = 0.5
WRITES_AT_ONCE: Final = 32
CONFLICTS_MAX: Final = 5


def cursor_key(session: SessionKey, client: str) -> str:
    """Return the bucket's key of that client of that session.

    Hashes only: what a bucket replaces stays on the disk for a while, and names must not (X-8).
    """
    return f"{token_of(session.user)}.{token_of(str(session), client)}"


class Cursors:
    """The cursors of connected clients."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = KeyValue(bus, "CURSORS")
        self._pending: dict[str, int] = {}
        self._has_pending = asyncio.Event()
        self._known: dict[str, tuple[int, int]] = {}
        """(revision, cursor) as read or written last, so that a write needs no reading first."""

    async def load(self, key: str) -> int:
        """Return the stream sequence of the last acknowledged message; 0 for a new client.

        Raises:
            BusError, Unavailable: the broker can't be asked.
        """
        return max(await self._read(key), self._pending.get(key, 0))

    def move(self, key: str, seq: int) -> None:
        """Note an acknowledgement; it's written soon."""
        if seq > self._pending.get(key, 0):
            self._pending[key] = seq
            self._has_pending.set()

    async def release(self, key: str) -> None:
        """Write what is noted for a client that left, and forget it."""
        await self._write_one(key)
        self._known.pop(key, None)

    async def run(self) -> None:
        """Write what was noted, until cancelled."""
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            await self.write()
            await asyncio.sleep(WRITE_INTERVAL_S)

    async def write(self) -> None:
        """Write everything noted so far; what can't be written now is tried again later."""
        keys = list(self._pending)
        for start in range(0, len(keys), WRITES_AT_ONCE):
            batch = keys[start : start + WRITES_AT_ONCE]
            await asyncio.gather(*(self._write_one(key) for key in batch))

    async def _write_one(self, key: str) -> None:
        seq = self._pending.get(key)
        if seq is None:
            return
        try:
            await self._advance(key, seq)
        except (Unavailable, BusError) as error:
            log.warning("cursor not written", action="gateway.cursor", error=str(error))
            self._has_pending.set()
            return
        if self._pending.get(key) == seq:
            del self._pending[key]

    async def _advance(self, key: str, seq: int) -> None:
        """Write `seq` unless something later is there."""
        for _ in range(CONFLICTS_MAX):
            if key not in self._known:
                await self._read(key)
            revision, stored = self._known.get(key, (0, 0))
            if stored >= seq:
                return
            try:
                revision = await self._bucket.put(key, b"%d" % seq, expect=revision)
            except WrongLastSequence:
                self._known.pop(key, None)
            else:
                self._known[key] = (revision, seq)
                return

    async def _read(self, key: str) -> int:
        entry = await self._bucket.get(key)
        stored = 0 if entry is None else _decode(entry.value)
        self._known[key] = (0 if entry is None else entry.revision, stored)
        return stored


def _decode(value: bytes) -> int:
    try:
        return max(0, msgspec.json.decode(value, type=int))
    except (msgspec.MsgspecError, ValueError):
        return 0  # unreadable: the client gets what it may have seen, rather than nothing
