"""Erasing a person from the streams: message by message, until nothing is left (SPEC X-8).

The broker overwrites the bytes of a message that is deleted by its sequence, and of no other: a
replaced entry of a bucket and a schedule that was purged or fired stay in their block until all of
it is given up (measured; docs/adr/0012). So there are three steps.

    sweep   delete what lies under the person's subjects, and what is theirs of memories that a
            team shares, again and again, until a while has passed in which nothing came. The
            services refuse the person meanwhile (`erasure`).
    ask     have the memory services that run remove what they made of it (`projections`).
    scrub   TIMERS, BOARD and the buckets that name people (:mod:`.scrub`).

Everything may be repeated: killed anywhere, the next call begins at the sweep, which is short when
there is little left. Only the admin may do this.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from .. import agent_pause, crash
from ..addressees import is_turn
from ..backup import projections
from ..bus.bus import Bus, Message
from ..clock import Clock
from ..contracts import (
    MemoryRecord,
    ScheduleTimer,
    UserMessage,
    decode_event,
    decode_turn,
    encode,
)
from ..errors import InvalidInput, WrongLastSequence
from ..layout import name_of
from ..settings import own, tokens
from ..settings.switches import PAUSED, Paused, forget_raise
from ..subjects import Scope, SessionKey
from ..teams import TEAM
from . import mark as erasure
from .deletion import erase_message, patience
from .mark import Erasure
from .scrub import SCRUBBED, Report, scrub
from .shared_memory import Sifting
from .theirs import filters_of

QUIET_S: Final = 2.0
"""So long nothing may come: more than a service takes from a record to what it makes of it."""
AT_ONCE: Final = 32


class Swept(msgspec.Struct, kw_only=True):
    """What was deleted, by stream; the partitions of the log count as one."""

    deleted: dict[str, int] = {}
    tokens: tuple[str, ...] = ()
    replicas: int = 0
    """Memory services that removed it from what they made of the log."""

    def count(self, stream: str) -> None:
        name = name_of(stream)
        self.deleted[name] = self.deleted.get(name, 0) + 1


class Eraser:
    """Erases one person from the streams.

    Raises, from each method:
        Unavailable: the broker fell silent; call again.
        BusError: it refused.
    """

    def __init__(self, bus: Bus, user: str, clock: Clock, report: Report) -> None:
        self._bus = bus
        self._user = user
        self._filters = filters_of(user)
        self._clock = clock
        self._report = report
        self.swept = Swept()

    async def run(self, *, quiet_s: float = QUIET_S) -> Erasure:
        """Do all of it, but for the tombstone; return the mark."""
        mark = await erasure.begin(self._bus, self._user, self._clock.now())
        crash.point("erase.marked")
        await self._end_tokens()
        crash.point("erase.tokens")
        await self.sweep(quiet_s=quiet_s)
        crash.point("erase.swept")
        self.swept.replicas = await projections.ask(self._bus, self._user, self._report)
        crash.point("erase.asked")
        await self._forget_pause()
        await own.forget(self._bus, self._user)
        await agent_pause.forget(self._bus, self._user)
        await forget_raise(self._bus, self._user)
        for stream in SCRUBBED:
            await scrub(self._bus, stream, self._report)
        # What a service had in hand when the scrub began is found here.
        await self.sweep(quiet_s=0)
        crash.point("erase.before_done")
        return mark

    # ------------------------------------------------------------ who may come in

    async def _end_tokens(self) -> None:
        """Revoke every token of the person; every gateway ends what it had let in."""
        ended: list[str] = []
        for message in await self._bus.read("KV_TOKENS", ["$KV.TOKENS.>"]):
            with contextlib.suppress(msgspec.MsgspecError, ValueError):
                token = msgspec.json.decode(message.data, type=tokens.Token)
                if token.user == self._user:
                    token_id = message.subject.removeprefix("$KV.TOKENS.")
                    await tokens.revoke(self._bus, token_id)
                    ended.append(token_id)
        self.swept.tokens = tuple(ended)

    async def _forget_pause(self) -> None:
        """A pause that the person ordered goes on, and doesn't name them any more."""
        found = await self._bus.get_last("KV_CONFIG", f"$KV.CONFIG.{PAUSED}")
        with contextlib.suppress(msgspec.MsgspecError, ValueError, WrongLastSequence):
            if found is not None and found.data:
                paused = msgspec.json.decode(found.data, type=Paused)
                if paused.by == self._user:
                    unnamed = msgspec.json.encode(Paused(at=paused.at, by="somebody erased"))
                    await self._bus.publish(found.subject, unnamed, expect=found.seq)

    # ------------------------------------------------------------ sweep

    async def sweep(self, *, quiet_s: float = QUIET_S) -> None:
        """Delete until nothing has come for `quiet_s` seconds."""
        while True:
            found = 0
            for stream, filters in await self._theirs():
                found += await self._sweep_stream(stream, filters)
            found += await self._sweep_shared()
            if not found:
                if quiet_s <= 0:
                    return
                await asyncio.sleep(quiet_s)
                if await self.left() == {}:
                    return

    async def left(self) -> dict[str, int]:
        """Return how many records there are still, by stream."""
        found: dict[str, int] = {}
        for stream, filters in self._filters.items():
            for subject in filters:
                if count := sum((await self._bus.subjects(stream, subject)).values()):
                    found[stream] = found.get(stream, 0) + count
        return found

    async def _theirs(self) -> list[tuple[str, list[str]]]:
        """Return each stream, and what is theirs there."""
        layout = await self._bus.layout()
        return [
            (stream, filters)
            for name, filters in self._filters.items()
            for stream in layout.streams(name)
        ]

    async def _sweep_stream(self, stream: str, filters: Sequence[str]) -> int:
        follower = await self._bus.follow(stream, filters, 1)
        waiting, found = follower.waiting, 0
        batch: list[Message] = []
        try:
            while found < waiting:
                message = await follower.next_within(QUIET_S)
                if message is None:
                    break
                found += 1
                batch.append(message)
                if len(batch) == AT_ONCE:
                    await self._erase_all(stream, batch)
                    batch = []
            await self._erase_all(stream, batch)
        finally:
            await follower.close()
        return found

    async def _sweep_shared(self) -> int:
        """Delete what is theirs of memories that a team shares."""
        sifting = Sifting(self._user)
        found: list[tuple[Message, MemoryRecord | None]] = []
        follower = await self._bus.follow("MEMORIES", [Scope("*", TEAM).everything], 1)
        try:
            for _ in range(follower.waiting):
                message = await follower.next_within(QUIET_S)
                if message is None:
                    break
                what = sifting.look(message.subject, message.data)
                if what.goes:
                    found.append((message, what.instead))
        finally:
            await follower.close()
        # What was made of it first: killed in between, it is still known as that.
        for message, instead in reversed(found):
            if instead is not None:
                await self._unnamed(instead)
            await self._erase("MEMORIES", message)
        return len(found)

    async def _unnamed(self, record: MemoryRecord) -> None:
        """Store what somebody decided once more, without their name."""
        op = str(record.__struct_config__.tag)
        subject = Scope(record.agent, record.owner).record(op)
        await patience().run(lambda: self._bus.publish(subject, encode(record), msg_id=record.id))

    async def _erase_all(self, stream: str, batch: list[Message]) -> None:
        await asyncio.gather(*(self._erase(stream, message) for message in batch))
        self._report(name_of(stream), self.swept.deleted.get(name_of(stream), 0))

    async def _erase(self, stream: str, message: Message) -> None:
        """Delete a record, after what hangs on it: killed in between, it is found again."""
        if name_of(stream) in ("SESSIONS", "SYSTEM"):
            await self._forget_id(message)
            await self._forget_schedules(message)
        elif stream == "TIMERS":
            await self._unschedule(message.subject)
        await erase_message(self._bus, stream, message.seq)
        self.swept.count(stream)
        crash.point("erase.message.after")

    async def _forget_id(self, message: Message) -> None:
        """Forget the idempotency key that a client chose for an event."""
        if ".in." not in message.subject:
            return
        with contextlib.suppress(InvalidInput):
            event = decode_event(message.data)
            if isinstance(event, UserMessage) and not event.payload.is_keyed:
                return
            subject = f"$KV.IDEMPOTENCY.{event.id.replace('-', '')}"
            found = await self._bus.get_last("KV_IDEMPOTENCY", subject)
            if found is not None:
                await erase_message(self._bus, "KV_IDEMPOTENCY", found.seq)

    async def _forget_schedules(self, message: Message) -> None:
        """Have the broker forget the schedules that a turn asked for.

        It keeps the subject of each in a file until its time has come, also when the schedule
        itself is long deleted (measured). A record without a schedule in its place ends that.
        """
        if not is_turn(message.subject):
            return
        with contextlib.suppress(InvalidInput):
            key, now = SessionKey.of_subject(message.subject), datetime.now(UTC)
            for effect in decode_turn(message.data).effects:
                if isinstance(effect, ScheduleTimer) and effect.payload.fire_at > now:
                    pair = effect.payload.timer_id, effect.payload.generation
                    await self._unschedule(key.timer(*pair))

    async def forget_schedules(self, subjects: Sequence[str]) -> None:
        """Have the broker forget schedules that are in its index and nowhere else."""
        for subject in subjects:
            await self._unschedule(subject)

    async def _unschedule(self, subject: str) -> None:
        if not subject.startswith("timer."):
            return
        ack = await patience().run(lambda: self._bus.publish(subject, b""))
        await erase_message(self._bus, "TIMERS", ack.seq)
