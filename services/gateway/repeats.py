"""Storing what has a name of its sender's only once, for a day.

The bucket IDEMPOTENCY maps the event's id, which derives from that name, to a hash of the body and
to where it was stored. A crash between the two writes leaves an entry without a place: whoever
comes next publishes again, which the broker drops as a repeat for two minutes, and the session
itself for good.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from vigil.bus import Bus
from vigil.contracts import encode
from vigil.errors import InvalidInput, VigilError, WrongLastSequence
from vigil.kv import Bucket

from .patience import patiently
from .wire import Accepted


class Remembered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bucket keeps of an event."""

    event_id: str
    body_hash: str
    seq: int | None = None
    """Where it was stored; None: not known yet."""


class Repeats:
    """The events that were taken in under a name, by this replica and the others."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = Bucket(bus, "IDEMPOTENCY")
        self._background: set[asyncio.Task[None]] = set()

    async def once(
        self,
        event_id: str,
        body_hash: str,
        store: Callable[[], Awaitable[Accepted]],
        *,
        conflict: InvalidInput,
    ) -> Accepted:
        """Call `store` unless the event is stored already; either way return its place.

        Raises:
            InvalidInput: `conflict`, if another body has that id.
            Problem: 503, the broker can't tell; and what `store` raises.
        """
        wanted = Remembered(event_id=event_id, body_hash=body_hash)
        found, revision = await patiently(lambda: self._remember(wanted))
        if found.body_hash != body_hash:
            raise conflict
        if found.seq is not None:
            return Accepted(event_id=event_id, seq=found.seq)
        accepted = await store()
        self._later(self._fill_in(found, accepted.seq, revision))
        return accepted

    async def close(self) -> None:
        """Finish what was left to write."""
        if self._background:
            await asyncio.wait(self._background, timeout=2)

    async def _remember(self, wanted: Remembered) -> tuple[Remembered, int]:
        """Write `wanted` unless the id is taken -> (what is there now, its revision)."""
        name = wanted.event_id.replace("-", "")
        while True:
            with contextlib.suppress(WrongLastSequence):
                return wanted, await self._bucket.put(name, encode(wanted), expect=0)
            entry = await self._bucket.get(name)
            if entry is not None:
                return msgspec.json.decode(entry.value, type=Remembered), entry.revision

    async def _fill_in(self, found: Remembered, seq: int, revision: int) -> None:
        """Note where it was stored. If that fails, a repeat publishes again, harmlessly."""
        value = encode(msgspec.structs.replace(found, seq=seq))
        with contextlib.suppress(VigilError):
            await self._bucket.put(found.event_id.replace("-", ""), value, expect=revision)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="gateway-fill-in")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
