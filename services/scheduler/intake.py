"""What comes in: the turns that ask for timers, and what the broker fired by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from vigil import crash
from vigil.bus.bus import Bus, Message, Puller
from vigil.contracts import EFFECTS_HEADER
from vigil.errors import InvalidInput, Unavailable
from vigil.observe import trace
from vigil.subjects import stream_of
from vigil.topology import Consumer

from . import decide
from .config import Limits
from .lanes import Lanes
from .promotion import Promoter
from .store import TimerStore


@contextlib.asynccontextmanager
async def pulling(bus: Bus, consumer: Consumer) -> AsyncIterator[Puller]:
    """Pull from `consumer`; afterwards what nobody took is given back."""
    puller = await bus.pull(consumer)
    try:
        yield puller
    finally:
        await puller.close()


async def _return(bus: Bus, message: Message) -> None:
    with contextlib.suppress(Unavailable):  # then it comes again after ack_wait
        await bus.nak(message, 0)


async def follow_due(puller: Puller, promoter: Promoter) -> None:
    """Take what the broker fired by itself, for as long as the term lasts."""
    async for message in puller:
        await promoter.receive(message)


class Turns:
    """Carries out the timer effects of one stream's turns: in order within a session, each at
    least once."""

    def __init__(
        self,
        bus: Bus,
        store: TimerStore,
        promoter: Promoter,
        limits: Limits,
        group: asyncio.TaskGroup,
    ) -> None:
        self._bus = bus
        self._store = store
        self._promoter = promoter
        self._limits = limits
        self._lanes: Lanes[Message] = Lanes(group, self._apply, in_flight=limits.turns_in_flight)
        self._open: dict[int, Message] = {}
        self._backlog: int | None = None
        """How many turns of the first backlog are still to be read; None: nobody knows yet."""
        self._is_read = asyncio.Event()

    async def follow(self, puller: Puller) -> None:
        """Read turns for as long as the term lasts."""
        async for message in puller:
            if "t" in message.headers.get(EFFECTS_HEADER, ""):
                crash.point("scheduler.turn.received")
                self._open[message.seq] = message
                self._lanes.put(message.subject, message.seq, message)
                await self._lanes.below(self._limits.turns_waiting_max)
            else:
                await self._ack(message)
            self._count(message)

    async def catch_up(self, puller: Puller) -> None:
        """Wait until the turns of an outage are carried out, within limits.

        Their timers may be due before those that were stored already. In a cluster, that no turn
        comes tells nothing before somebody has answered.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.catch_up_max_s):
                while not self._is_read.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._limits.catch_up_quiet_s):
                            await self._is_read.wait()
                    if self._backlog is None and puller.is_heard:
                        break
                await self._lanes.below(1)

    async def give_back(self) -> None:
        """Return what was not finished, so that the next one has it at once."""
        for message in list(self._open.values()):
            await _return(self._bus, message)

    def _count(self, message: Message) -> None:
        self._backlog = message.pending if self._backlog is None else self._backlog - 1
        if self._backlog <= 0:
            self._is_read.set()

    async def _apply(self, message: Message) -> None:
        try:
            changes = decide.changes_of(
                message.subject, message.data, message.headers.get(trace.HEADER)
            )
        except InvalidInput as error:
            await self._store.bury(stream_of(message.subject), message, error)
        else:
            await self.carry_out(changes)
        crash.point("scheduler.turn.before_ack")
        await self._ack(message)
        self._open.pop(message.seq, None)

    async def carry_out(self, changes: decide.Changes) -> None:
        """Do what a turn asks for; may be repeated."""
        for scheduled in changes.scheduled:
            if self._promoter.is_erasing(scheduled.entry):
                continue
            crash.point("scheduler.schedule.before")
            await self._store.schedule(scheduled.entry, scheduled.effect_id)
            crash.point("scheduler.schedule.after")
            self._promoter.add(scheduled.entry)
        await asyncio.gather(*(self._promoter.cancel(c) for c in changes.cancelled))

    async def _ack(self, message: Message) -> None:
        with contextlib.suppress(Unavailable):  # it comes again, and repeats are harmless
            await self._bus.ack(message)
