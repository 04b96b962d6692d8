"""Deleting what lies under some subjects, record by record, each after what hangs on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from .. import crash
from ..addressees import is_turn
from ..bus.bus import Bus, Message
from ..contracts import ScheduleTimer, UserMessage, decode_event, decode_turn
from ..errors import InvalidInput
from ..layout import name_of
from ..subjects import SessionKey
from .deletion import erase_message, patience
from .scrub import Report

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


class Sweeper:
    """Deletes what lies under the filters, by stream.

    Raises, from each method:
        Unavailable: the broker fell silent; call again.
        BusError: it refused.
    """

    def __init__(self, bus: Bus, filters: Mapping[str, Sequence[str]], report: Report) -> None:
        self._bus = bus
        self._filters = filters
        self._report = report
        self.swept = Swept()

    async def pass_once(self) -> int:
        """Delete what is there; return how many records were found."""
        return sum(
            [await self._sweep_stream(stream, some) for stream, some in await self._theirs()]
        )

    async def _theirs(self) -> list[tuple[str, Sequence[str]]]:
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
