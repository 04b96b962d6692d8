"""Orders in hand: each channel on its own, a few requests at once, the rest waits or goes back.

The broker gives an order again after a while unless it's told that somebody works on it. When an
order is to be tried next is in the log; giving it back with a delay is only what wakes us.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus, Message, Puller
from vigil.clock import Clock
from vigil.errors import InvalidInput, Unavailable, VigilError
from vigil.subjects import SessionKey
from vigil.worker.groups import begin

from . import orders
from .carrier import Carrier
from .config import Limits
from .orders import Order

log = structlog.get_logger("vigil.delivery")

DELAY_MIN_S: Final = 0.01


class _Lane:
    """What one channel has in hand."""

    def __init__(self, at_once: int) -> None:
        self.gate = asyncio.Semaphore(at_once)
        self.in_hand = 0


class Outbox:
    """Takes orders from the broker and sees that each is acknowledged or comes again."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        carrier: Carrier,
        limits: Limits,
        group: asyncio.TaskGroup,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._carrier = carrier
        self._limits = limits
        self._group = group
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def run(self, puller: Puller) -> None:
        """Take orders until cancelled."""
        while True:
            try:
                await self._take(await anext(puller))
            except Unavailable as error:
                log.warning("can't pull", action="delivery.pull", error=str(error))
                await asyncio.sleep(0.1)

    async def _take(self, message: Message) -> None:
        crash.point("delivery.attempt.received")
        try:
            key, order = orders.read_order(message.subject, message.seq, message.data)
        except InvalidInput as error:
            await self._bury(message, error)
            return
        if self._carrier.is_erasing(key.user):
            await self._ack(message)
            return
        lane = self._lanes.get(order.record.channel)
        if lane is None:
            lane = self._lanes[order.record.channel] = _Lane(self._limits.sends_at_once_max)
        if lane.in_hand >= self._limits.orders_in_hand_max:
            await self._give_back(message, self._limits.overflow_delay_s)
            return
        lane.in_hand += 1
        task = begin(self._group, self._work(lane, key, order, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, lane: _Lane, key: SessionKey, order: Order, message: Message) -> None:
        heart = asyncio.create_task(self._beat(message), name="delivery-heart")
        try:
            async with lane.gate:
                if self._is_stopping:
                    await self._give_back(message, self._limits.stop_delay_s)
                else:
                    await self._carry(key, order, message)
        except asyncio.CancelledError:
            # In the middle of a request: how it ended is unknown, and whoever is next says so.
            await self._give_back(message, self._limits.stop_delay_s)
            raise
        finally:
            heart.cancel()
            lane.in_hand -= 1
            if lane.in_hand == 0:
                self._lanes.pop(order.record.channel, None)

    async def _carry(self, key: SessionKey, order: Order, message: Message) -> None:
        try:
            later = await self._carrier.carry(key, order, message)
        except Unavailable as error:
            log.info(
                "order given back", action="delivery.give_back", subject=message.subject,
                seq=message.seq, delivered=message.delivered, error=str(error),
            )  # fmt: skip
            await self._give_back(message, self._limits.give_back_delay_s)
        except InvalidInput as error:
            await self._unreadable(message, error)
        except Exception as error:
            await self._refused(message, error)
        else:
            if later is None:
                await self._ack(message)
            else:
                delay_s = (later.at - self._clock.now()).total_seconds()
                await self._give_back(message, max(delay_s, DELAY_MIN_S))

    async def _refused(self, message: Message, error: Exception) -> None:
        """The broker refused, or a bug: neither may end the service or retry at once."""
        log.error(
            "refused", action="delivery.refused", subject=message.subject, seq=message.seq,
            delivered=message.delivered, error=repr(error),
            exc_info=None if isinstance(error, VigilError) else error,
        )  # fmt: skip
        delay_s = self._limits.after_refusal.after(message.delivered)
        await self._give_back(message, delay_s)

    async def _bury(self, message: Message, cause: InvalidInput) -> None:
        """Store a dead letter of an order that can't be read, then acknowledge."""
        try:
            await self._carrier.bury_unreadable(message, str(cause))
        except VigilError as error:
            await self._refused(message, error)
        else:
            await self._ack(message)

    async def _unreadable(self, message: Message, error: InvalidInput) -> None:
        log.error(
            "unreadable", action="delivery.unreadable", subject=message.subject, seq=message.seq,
            error=str(error),
        )  # fmt: skip
        await self._give_back(message, self._limits.unreadable_delay_s)

    async def _beat(self, message: Message) -> None:
        while True:
            await asyncio.sleep(self._limits.heartbeat_s)
            with contextlib.suppress(Unavailable):
                await self._bus.in_progress(message)

    async def _ack(self, message: Message) -> None:
        crash.point("delivery.attempt.before_ack")
        with contextlib.suppress(Unavailable):  # then it comes again, and is found closed
            await self._bus.ack(message)

    async def _give_back(self, message: Message, delay_s: float) -> None:
        with contextlib.suppress(Unavailable):  # then it comes again after ack_wait
            await self._bus.nak(message, delay_s)

    async def stop(self, *, grace_s: float) -> None:
        """Let the requests under way end, for `grace_s` seconds at most; give back the rest."""
        self._is_stopping = True
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
