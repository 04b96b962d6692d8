"""Storing what has a name of its sender's only once, for a day.

The bucket IDEMPOTENCY maps the event's id, which derives from that name, to a hash of the body and
to where it was stored. First the name is reserved, with how far the log was by then; then the event
is published; then its place is noted, behind the answer. Whoever comes to a name without a place
looks for the event on the log, from there on, before it's published again, and publishes only if
nothing came between. So nothing depends on how long the broker remembers the ids of messages, but
for two requests with one name at the same moment: there it takes seconds, and it knows them for two
minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec
import structlog

from vigil import crash
from vigil.bus.batches import last_sequence
from vigil.bus.bus import MSG_ID, Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import UserMessagePayload, encode
from vigil.errors import InvalidInput, VigilError, WrongLastSequence

from ..http.problem import unavailable
from ..http.wire import Accepted
from ..patience import TRY_TIMEOUT_S, patiently

log = structlog.get_logger("vigil.gateway")

PAGE: Final = 500
"""Messages that are looked through at a time."""
TRIES_MAX: Final = 20
"""Of publishing again, while others write to the same session."""


class StoragePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event is stored, if it is."""

    stream: str
    subject: str
    among: str = ""
    """A wildcard that its writers expect something of; empty: the subject itself."""


class Remembered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bucket keeps of an event."""

    event_id: str
    body_hash: str
    seq: int | None = None
    """Where it was stored; None: not known yet."""
    after: int = 0
    """A sequence of the log that was given before the name was reserved."""


class Repeats:
    """The events that were taken in under a name, by this replica and the others."""

    def __init__(self, bus: Bus, impatience: Callable[[], Callable[[], None]]) -> None:
        """`impatience` gives, for each write, what ends the patience with it if it fails."""
        self._bus = bus
        self._impatience = impatience
        self._bucket = KeyValue(bus, "IDEMPOTENCY")
        self._ends: dict[str, int] = {}
        """By stream: the highest sequence that this process knows to be given."""
        self._background: set[asyncio.Task[None]] = set()

    async def once(
        self,
        event_id: str,
        body_hash: str,
        place: StoragePlace,
        store: Callable[[int | None], Awaitable[Accepted]],
        *,
        conflict: InvalidInput,
    ) -> Accepted:
        """Call `store` unless the event is stored already; either way return its place.

        Args:
            store: publishes the event; given a sequence, only if it's the last of the place, and
                raises WrongLastSequence otherwise.

        Raises:
            InvalidInput: `conflict`, if another body has that id.
            Problem: 503, the broker can't tell; and what `store` raises.
        """
        after = await patiently(lambda: self._end(place), self._impatience())
        wanted = Remembered(event_id=event_id, body_hash=body_hash, after=after)
        found, revision, is_new = await patiently(lambda: self._reserve(wanted), self._impatience())
        if found.body_hash != body_hash:
            raise conflict
        if found.seq is not None:
            return Accepted(event_id=event_id, seq=found.seq)
        crash.point("gateway.key.reserved")
        accepted = await (store(None) if is_new else self._unless_there(found, place, store))
        stream, _ = await self._bus.locate(place.stream, [place.subject])
        self._ends[stream] = max(self._ends.get(stream, 0), accepted.seq)
        self._later(self._fill_in(found, accepted.seq, revision))
        return accepted

    async def close(self) -> None:
        """Finish what was left to write."""
        if self._background:
            await asyncio.wait(self._background, timeout=2)

    async def _end(self, place: StoragePlace) -> int:
        """Return a sequence that its stream has given: asked once, then as events are stored."""
        stream, _ = await self._bus.locate(place.stream, [place.subject])
        if stream not in self._ends:
            self._ends[stream] = await last_sequence(self._bus, stream, TRY_TIMEOUT_S)
        return self._ends[stream]

    async def _reserve(self, wanted: Remembered) -> tuple[Remembered, int, bool]:
        """Write `wanted` unless the id is taken -> (what is there, its revision, is it new?)."""
        name = wanted.event_id.replace("-", "")
        while True:
            with contextlib.suppress(WrongLastSequence):
                revision = await self._bucket.put(
                    name, encode(wanted), expect=0, timeout=TRY_TIMEOUT_S
                )
                return wanted, revision, True
            entry = await self._bucket.get(name)
            if entry is not None:
                found = msgspec.json.decode(entry.value, type=Remembered)
                return found, entry.revision, False

    async def _unless_there(
        self,
        found: Remembered,
        place: StoragePlace,
        store: Callable[[int | None], Awaitable[Accepted]],
    ) -> Accepted:
        """Store what somebody began to store, unless it's on the log."""
        after = found.after
        for _ in range(TRIES_MAX):
            seq, last = await patiently(lambda: self._find(found.event_id, place, after))  # noqa: B023
            if seq is not None:
                return Accepted(event_id=found.event_id, seq=seq)
            crash.point("gateway.key.looked")
            try:
                return await store(last)
            except WrongLastSequence:  # somebody's came between, which may be this very event
                after = last
        raise unavailable("the session is too busy; try again")

    async def _find(self, event_id: str, place: StoragePlace, after: int) -> tuple[int | None, int]:
        """Look for an event behind `after` -> (where it is or None, the last of the place)."""
        newest = await self._bus.get_last(place.stream, place.among or place.subject)
        last = 0 if newest is None else newest.seq
        has_more = last > after
        while has_more:
            page, has_more = await self._bus.page(
                place.stream, [place.subject], after + 1, limit=PAGE
            )
            for message in page:
                if message.header(MSG_ID) == event_id:
                    return message.seq, last
                after = message.seq
            has_more = has_more and after < last
        return None, last

    async def _fill_in(self, found: Remembered, seq: int, revision: int) -> None:
        """Note where it was stored. If that fails, a repeat looks for it."""
        value = encode(msgspec.structs.replace(found, seq=seq))
        try:
            await self._bucket.put(found.event_id.replace("-", ""), value, expect=revision)
        except WrongLastSequence:
            return  # a repeat noted it
        except VigilError as error:
            log.info("place not noted", action="gateway.key", error=str(error))
        crash.point("gateway.key.noted")

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="gateway-fill-in")
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def hash_of(body: bytes) -> str:
    """Return what a body is compared by."""
    return hashlib.sha256(body).hexdigest()[:32]


def hash_of_message(payload: UserMessagePayload) -> str:
    """Return what a message of a person's is compared by."""
    parts = [payload.text, *(one.hash for one in payload.attachments)]
    if payload.reply_to is not None:
        parts.append(payload.reply_to.id)
    return hash_of("\0".join(parts).encode())
