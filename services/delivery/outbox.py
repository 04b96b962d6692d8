"""Orders in hand: each channel on its own, a few requests at once, the rest waits or goes back.

When an order is to be tried next is in the log; giving it back with a delay is only what wakes us.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import Dispatch, encode
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.observe import trace
from vigil.worker.effects import InHand, Tasks
from vigil.worker.outcomes import TryLater
from vigil.worker.requeue import DONE, RequeueReply

from . import decide, orders
from .carrier import Carrier
from .channels import ComingChannels
from .config import DeliveryLimits
from .orders import Order
from .sequence import held_until

log = structlog.get_logger("vigil.delivery")

DELAY_MIN_S: Final = 0.01
COMING_S: Final = 1.0
"""After which an order comes again whose channel others know already."""


class Outbox:
    """Carries out orders (:class:`vigil.worker.effects.Effects`).

    Args:
        ordered: the channels that keep the order of a conversation.
        coming: the channels that aren't used here yet; None: none are to come.
    """

    service = decide.SERVICE
    name = "delivery.attempt"
    letter = None
    tags = ()

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        carrier: Carrier,
        limits: DeliveryLimits,
        ordered: Collection[str] = (),
        coming: ComingChannels | None = None,
    ) -> None:
        self._coming = coming
        self._ordered = ordered
        self._bus = bus
        self._clock = clock
        self._carrier = carrier
        self._limits = limits

    def lane_of(self, message: Message) -> str:
        """Return the channel; of what can't be read, a lane of its own."""
        with contextlib.suppress(InvalidInput):
            return self.wanted(message)[0].record.channel
        return ""

    def wanted(self, message: Message) -> list[Order]:
        """Return the order. Raises: InvalidInput."""
        return [orders.read_order(message.subject, message.seq, message.data)[1]]

    async def carry_out(self, turn: InHand, effect: Order) -> Tasks:
        """Carry an order as far as it can be now.

        Raises:
            TryLater: when it is to be tried again.
            Unavailable: the broker did not answer for some seconds.
            BusError: the broker refused.
        """
        if self._coming is not None and await self._coming.has(effect.record.channel):
            raise TryLater(COMING_S)
        try:
            later = None
            if effect.record.channel in self._ordered:
                later = await held_until(self._bus, turn.key, effect, self._clock.now())
            if later is None:
                later = await self._carrier.carry(turn.key, effect, turn.message)
        except InvalidInput as error:
            log.error(
                "unreadable",
                action="delivery.unreadable",
                subject=turn.message.subject,
                seq=turn.message.seq,
                error=str(error),
            )
            raise TryLater(self._limits.unreadable_delay_s) from error
        if later is not None:
            delay_s = (later.at - self._clock.now()).total_seconds()
            raise TryLater(max(delay_s, DELAY_MIN_S))
        return []

    async def give_up(self, turn: InHand, effect: Order, cause: str) -> None:
        """Nothing: only its channel's own limits end an order."""

    # ------------------------------------------------------------ a person wants it again

    async def order_again(self, message: Message, *, by: str) -> RequeueReply:
        """Order anew what no channel took: expecting the dead order to be the last, so that asked
        for twice, there is one.

        Raises:
            InvalidInput: the order can't be read.
            Unavailable: try again later.
        """
        key, order = orders.read_order(message.subject, message.seq, message.data)
        seen = await self._carrier.seen(key, order)
        if seen.dispatch_seq > order.seq:
            return DONE
        if (reason := orders.may_requeue(seen)) is not None:
            return RequeueReply(outcome="refused", reason=reason)
        record = Dispatch(
            effect_id=order.record.effect_id,
            session_key=order.record.session_key,
            channel=order.record.channel,
            said_seq=order.record.said_seq,
            at=self._clock.now(),
            requeued_by=by,
        )
        await self._store(message, order, record)
        crash.point("delivery.requeue.after_dispatch")
        return DONE

    async def _store(self, message: Message, order: Order, record: Dispatch) -> None:
        headers = {trace.HEADER: trace.passed_on(message.header(trace.HEADER))}
        try:
            await self._bus.publish(message.subject, encode(record), headers, expect=order.seq)
        except WrongLastSequence:
            return  # somebody else's wish came first: that order will do
        log.info(
            "requeued",
            action="delivery.requeued",
            session=record.session_key,
            effect=record.effect_id,
            channel=record.channel,
            by=record.requeued_by,
        )
