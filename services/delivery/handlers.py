"""What delivery does with turns: says their sends in order.

A send before it that isn't settled keeps a turn waiting for a while, then it comes again. What
the broker refuses for good becomes a receipt `failed`, so that what comes after it can go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import SendMessage
from vigil.errors import Unavailable
from vigil.observe import metrics, trace
from vigil.observe.metrics import Metrics
from vigil.observe.trace import Tracer
from vigil.subjects import SessionKey
from vigil.worker.effects import InHand, Tasks
from vigil.worker.outcomes import Overtaken, Terminal
from vigil.worker.turns import session_of

from . import decide
from .claims import Claims
from .config import DeliveryLimits
from .decide import Close, Tail

log = structlog.get_logger("vigil.delivery")


async def _nothing_to_order(key: SessionKey, send: SendMessage, turn: Message) -> None:
    """With the socket alone, the claim is the delivery."""


Ensure = Callable[[SessionKey, SendMessage, Message], Awaitable[None]]
"""Orders what was said over another channel, if it was; may be repeated."""


class Speech:
    """Carries out what turns say (:class:`vigil.worker.effects.Effects`).

    Args:
        ensure: called for each settled send, before its turn is acknowledged.
    """

    service = decide.SERVICE
    name = "delivery.turn"
    letter = decide.LETTER
    tags = decide.TAGS

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        limits: DeliveryLimits,
        tracer: Tracer = trace.OFF,
        counts: Metrics | None = None,
        ensure: Ensure = _nothing_to_order,
    ) -> None:
        self._ensure = ensure
        self._bus = bus
        self._limits = limits
        self._counts = counts or Metrics(decide.SERVICE)
        self.claims = Claims(bus, clock, limits, tracer, self._counts)

    def lane_of(self, message: Message) -> str:
        return session_of(message.subject)

    def wanted(self, message: Message) -> list[SendMessage]:
        """Return what a turn says, in order. Raises: InvalidInput."""
        return decide.sends_of(decide.read_turn(message.subject, message.data)[1])

    async def carry_out(self, turn: InHand, effect: SendMessage) -> Tasks:
        """Settle one send; may be repeated.

        Raises:
            Overtaken: the turn of the send before it is here.
            Unavailable: the send before it isn't settled, or the broker did not answer.
            Terminal: of what a person wants again: it was given up for good.
            BusError: the broker refused.
        """

        async def wait(key: SessionKey, effect_id: str) -> Tail:
            found = await self.claims.find(key, effect_id)
            if found is not None:
                return found
            if turn.is_requeued:
                return await self._before_requeued(turn, effect_id)
            return await self._predecessor(turn, effect_id)

        await self.claims.settle(turn.key, effect, turn.message, wait)
        await self._ensure(turn.key, effect, turn.message)
        if turn.is_requeued:
            reason = await self.claims.failure(turn.key, effect.id)
            if reason is not None:
                raise Terminal(f"what it says was given up for good: {reason}")
        return []

    async def give_up(self, turn: InHand, effect: SendMessage, cause: str) -> None:
        """Close what could not be said, so that later sends don't wait for it.

        Raises:
            Unavailable, BusError: the broker doesn't take that either.
        """
        if await self.claims.find(turn.key, effect.id) is None:
            close = Close("failed", cause)
            traceparent = trace.passed_on(turn.message.header(trace.HEADER))
            if await self.claims.close(turn.key, effect.id, close, traceparent):
                self._counts.count(metrics.SENDS, close.outcome)

    async def _before_requeued(self, turn: InHand, effect_id: str) -> Tail:
        if await self.claims.is_decided(turn.key, effect_id, before=turn.message.seq):
            raise Unavailable(f"the send {effect_id} before it is not settled yet")
        return Tail(effect_id)

    async def _predecessor(self, turn: InHand, effect_id: str) -> Tail:
        """Wait until the send before this turn's is settled."""
        key, message = turn.key, turn.message
        await self._bus.in_progress(message)
        for wait_s in self._limits.predecessor_waits_s:
            if turn.is_overtaken:
                raise Overtaken(str(key))
            if turn.is_stopping:
                break
            await asyncio.sleep(wait_s)
            found = await self.claims.find(key, effect_id)
            if found is not None:
                return found
        if message.delivered >= self._limits.search_from_delivery and not (
            await self.claims.is_decided(key, effect_id, before=message.seq)
        ):
            # Its turn is gone or unreadable: nobody can ever say it.
            log.warning(
                "predecessor lost",
                action="delivery.predecessor_lost",
                session=str(key),
                effect=effect_id,
                seq=message.seq,
            )
            return Tail(effect_id)
        raise Unavailable(f"{effect_id} is not settled")
