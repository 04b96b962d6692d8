"""Carrying on the bus: drives :func:`services.delivery.dispatch.carry` with real answers.

Orders, attempts and receipts are written with an expectation, so everything here may be repeated.
After an answer that never came the log is read; nothing remembered counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import structlog

from vigil import crash, topology
from vigil.bus.bus import MSG_ID, Bus, Message
from vigil.channels.answers import Answer, NotTaken, Taken
from vigil.circuits import CircuitOpen, Circuits, Passed
from vigil.clock import Clock
from vigil.contracts import (
    SOCKET,
    Said,
    SendMessage,
    decode_attempt,
    decode_dispatch,
    decode_receipt,
    decode_said,
    encode,
)
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import metrics, spans, trace
from vigil.runtime import Context
from vigil.settings.switches import has_mind
from vigil.subjects import SessionKey
from vigil.worker import dead_letters

from . import causes, decide, dispatch, orders
from .channels import OpenChannel
from .config import DeliveryLimits, patience_of
from .dispatch import (
    Bury,
    FindSpoken,
    Later,
    OrderNext,
    ReadLog,
    Sent,
    StoreAttempt,
    StoreReceipt,
    TrySend,
)
from .orders import Order, Seen

log = structlog.get_logger("vigil.delivery")

STREAM: Final = topology.DELIVERY_SENDS.stream
_DECODERS: Final = {
    "send": decode_dispatch,
    "attempt": decode_attempt,
    "receipt": decode_receipt,
}


class Carrier:
    """Carries orders over channels.

    Args:
        dice: returns 0.0 <= x < 1.0; spreads retries.
    """

    def __init__(
        self,
        context: Context,
        channels: Mapping[str, OpenChannel],
        limits: DeliveryLimits,
        dice: Callable[[], float],
    ) -> None:
        self._bus: Bus = context.bus
        self._clock: Clock = context.clock
        self._new_id = context.new_id
        self._tracer = context.tracer
        self._metrics = context.metrics
        self._channels = channels
        self.ways = causes.Ways(channels)
        self._limits = limits
        self._dice = dice
        self._has_mind = partial(has_mind, context.settings.config)
        patience_s = max((one.terms.patience_s for one in channels.values()), default=0.0)
        self._circuits = Circuits.of(context, patience_s=patience_s)
        self.is_gone: Callable[[SessionKey], bool] = lambda key: False
        """Whether a session is being deleted: nothing of it is carried any more."""

    # ------------------------------------------------------------ orders

    async def ensure(self, key: SessionKey, send: SendMessage, turn: Message) -> None:
        """Order what a turn said over another channel than the socket; harmless to repeat.

        Raises:
            Unavailable: nobody knows if the order is stored.
        """
        channel = await causes.channel_of(self._bus, key, send, turn, self.ways)
        if channel == SOCKET:
            return
        said = await self._bus.get_last(STREAM, key.out_said(send.id))
        if said is None:
            return  # void, or closed for another reason
        record = orders.order_of(
            key, send, decode_said(said.data), said.seq, channel, now=self._clock.now()
        )
        crash.point("delivery.dispatch.before")
        try:
            await self._bus.publish(key.send(send.id), encode(record), _headers(turn), expect=0)
        except WrongLastSequence:
            return
        crash.point("delivery.dispatch.after")

    async def carry(self, key: SessionKey, order: Order, message: Message) -> Later | None:
        """Carry an order as far as it can be now; None: nothing is left to do.

        Raises:
            Unavailable: the broker did not answer for some seconds.
            BusError: the broker refused.
            InvalidInput: something that is stored about it can't be read.
        """
        channel = self._channels.get(order.record.channel)
        work = _Work(self, key, order, message, channel)
        asks = dispatch.carry(order, None if channel is None else channel.terms)
        answer: Any = None
        try:
            while True:
                try:
                    ask = asks.send(answer)
                except StopIteration as end:
                    later: Later | None = end.value
                    return later
                answer = await work.answer(ask)
        except CircuitOpen as refusal:
            # Nothing is stored, no try is used up: the order waits as it is.
            return Later(self._clock.now() + timedelta(seconds=refusal.wait_s))
        finally:
            await work.end()

    async def close(
        self, key: SessionKey, order: Order, message: Message, receipt: StoreReceipt
    ) -> bool:
        """Store how an order ended, if nothing else was stored meanwhile. Raises: as `carry`."""
        channel = self._channels.get(order.record.channel)
        return bool(await _Work(self, key, order, message, channel).answer(receipt))

    async def seen(self, key: SessionKey, order: Order) -> Seen:
        """Read everything that is stored about an order's effect.

        Raises:
            InvalidInput: a record can't be read.
        """
        effect = order.record.effect_id
        filters = [key.send(effect), key.attempt(effect), key.receipt(effect)]
        found = [
            (message.seq, _DECODERS[message.subject.split(".")[4]](message.data))
            for message in await self._bus.read(
                STREAM, filters, timeout=self._limits.read_timeout_s
            )
        ]
        return orders.fold(order, found, now=self._clock.now(), dice=self._dice())  # type: ignore[arg-type]

    async def bury(self, key: SessionKey, order: Order, message: Message, cause: str) -> None:
        """Store the order's dead letter."""
        effect_id = order.record.effect_id
        letter = dead_letters.build(
            decide.SERVICE, message, cause, key, now=self._clock.now(), effect_id=effect_id
        )
        await dead_letters.bury(self._bus, self._metrics, letter, message, key)
        crash.point("delivery.attempt.buried")


def _headers(message: Message) -> dict[str, str]:
    return {trace.HEADER: trace.passed_on(message.header(trace.HEADER))}


class _Work:
    """One run of the protocol for one order."""

    def __init__(
        self,
        carrier: Carrier,
        key: SessionKey,
        order: Order,
        message: Message,
        channel: OpenChannel | None,
    ) -> None:
        self._carrier = carrier
        self._bus = carrier._bus
        self._key = key
        self._order = order
        self._message = message
        self._channel = channel
        self._passed: Passed | None = None
        self._header = trace.passed_on(message.header(trace.HEADER))
        self._patience = patience_of(carrier._limits, key, order.record.effect_id)

    async def answer(self, ask: dispatch.Ask) -> Any:
        """Do what the protocol asks for, again while the broker is away.

        Raises:
            CircuitOpen: before a try, of a channel that failed and isn't asked now.
        """
        if self._carrier.is_gone(self._key):
            # What is stored about the order vanishes; it must not look like a new one.
            raise Unavailable(f"{self._key} is being deleted")
        if isinstance(ask, TrySend):
            return await self._send(ask)
        if isinstance(ask, StoreAttempt) and ask.state == "begun":
            channel = f"channel:{self._order.record.channel}"
            self._passed = await self._carrier._circuits.enter(channel)
        own = self._carrier._new_id()
        return await self._patience.run(partial(self._on_the_log, ask, own))

    async def _on_the_log(
        self,
        ask: ReadLog | FindSpoken | StoreAttempt | StoreReceipt | OrderNext | Bury,
        own: str,
    ) -> Any:
        if isinstance(ask, ReadLog):
            return await self._carrier.seen(self._key, self._order)
        if isinstance(ask, FindSpoken):
            return await self._spoken()
        if isinstance(ask, StoreAttempt):
            return await self._note(ask, own)
        if isinstance(ask, StoreReceipt):
            return await self._close(ask, own)
        if isinstance(ask, OrderNext):
            return await self._order_next(ask, own)
        await self._carrier.bury(self._key, self._order, self._message, ask.cause)
        if ask.is_lost:
            await self._notify_mind()
        return None

    # ------------------------------------------------------------ the log

    async def _note(self, note: StoreAttempt, own: str) -> int | None:
        record = dispatch.attempt_of(self._order, note, now=self._carrier._clock.now())
        subject = self._key.attempt(self._order.record.effect_id)
        seq = await self._store(subject, encode(record), note.expect, own)
        if seq is None:
            return None
        if note.state == "begun":
            crash.point("delivery.attempt.begun")
            return seq
        crash.point("delivery.attempt.ended")
        log.info(
            "not delivered", action="delivery.attempt", session=str(self._key),
            effect=record.effect_id, channel=record.channel, number=note.number,
            state=note.state, reason=note.reason, next_at=note.next_at and note.next_at.isoformat(),
        )  # fmt: skip
        return seq

    async def _close(self, close: StoreReceipt, own: str) -> bool:
        record = dispatch.receipt_of(self._order, close, now=self._carrier._clock.now())
        subject = self._key.receipt(record.effect_id)
        if await self._store(subject, encode(record), close.expect, own) is None:
            return False
        crash.point("delivery.attempt.closed")
        labels = self._order.record.channel, close.outcome
        self._carrier._metrics.count(metrics.CHANNEL_RECEIPTS, *labels)
        log.info(
            "order closed", action="delivery.closed", session=str(self._key),
            effect=record.effect_id, channel=self._order.record.channel, outcome=close.outcome,
            reason=close.reason,
        )  # fmt: skip
        return True

    async def _order_next(self, ask: OrderNext, own: str) -> None:
        now = self._carrier._clock.now()
        record = orders.next_of(self._order, ask.channel, ask.otherwise, now=now)
        subject = self._key.send(record.effect_id)
        await self._store(subject, encode(record), self._order.seq, own)
        crash.point("delivery.dispatch.next")
        about = {"session": str(self._key), "effect": record.effect_id, "channel": record.channel}
        log.info("goes over the next channel", action="delivery.next", **about)

    async def _notify_mind(self) -> None:
        """Tell the mind, once, of what was said unasked and reached nobody (SPEC G-6)."""
        said, carrier = await self._said(), self._carrier
        if said is None or not said.is_autonomous or not carrier._has_mind(self._key.agent):
            return
        event = orders.lost(self._key, said, now=carrier._clock.now())
        subject = SessionKey.parse(event.session_key).in_event(f"told.{said.id}")
        with contextlib.suppress(WrongLastSequence):
            await self._bus.publish(subject, encode(event), {trace.HEADER: self._header}, expect=0)
        crash.point("delivery.attempt.told")

    async def _store(self, subject: str, data: bytes, expect: int, own: str) -> int | None:
        """Publish with an expectation -> the sequence; None if another write came first.

        If no answer comes, the log tells by `own`, a random id, if the write was ours. It's the
        same when it is done again, or our own write would be taken for another replica's.

        Raises:
            Unavailable: the log could not be read either.
        """
        headers = {trace.HEADER: self._header}
        try:
            ack = await self._bus.publish(subject, data, headers, expect=expect, msg_id=own)
        except (WrongLastSequence, Unavailable):
            newest = await self._bus.get_last(STREAM, subject)
            if newest is not None and newest.header(MSG_ID) == own:
                return newest.seq
            return None
        return ack.seq

    async def _spoken(self) -> int:
        """Return the first message of the person that voids a retry, or 0."""
        said = await self._said()
        if said is None or not await self._is_voidable(said):
            return 0
        after = self._order.record.said_seq + 1
        spoke = await self._bus.get_next(STREAM, self._key.in_user, after)
        return 0 if spoke is None else spoke.seq

    async def _is_voidable(self, said: Said) -> bool:
        """Tell what the turn decided; a turn that is gone leaves what the message says."""
        turn = await self._bus.get_of(self._key, said.turn_seq)
        if turn is None or not self._key.is_turn(turn.subject):
            return said.is_autonomous
        _, record = decide.read_turn(turn.subject, turn.data)
        return any(
            send.payload.is_voidable for send in decide.sends_of(record) if send.id == said.id
        )

    async def _said(self) -> Said | None:
        found = await self._bus.get_of(self._key, self._order.record.said_seq)
        if found is None or found.subject != self._key.out_said(self._order.record.effect_id):
            return None
        return decode_said(found.data)

    # ------------------------------------------------------------ the channel

    async def _send(self, send: TrySend) -> Sent:
        carrier = self._carrier
        span = carrier._tracer.begin(self._header)
        answer = await self._handed_over()
        crash.point("delivery.attempt.sent")
        record = self._order.record
        outcome = _outcome(answer)
        carrier._metrics.observe(metrics.CHANNEL_SECONDS, span.lasted_s, record.channel, outcome)
        if carrier._tracer.is_on:
            attributes: dict[str, str | int] = {
                spans.SESSION: str(self._key),
                spans.EFFECT: record.effect_id,
                spans.CHANNEL: record.channel,
                spans.ATTEMPT: send.number,
                spans.OUTCOME: outcome,
            }
            if not isinstance(answer, Taken) and answer.status is not None:
                attributes[spans.HTTP_STATUS] = answer.status
            error = "" if isinstance(answer, Taken) else outcome
            carrier._tracer.end(span, spans.SEND, attributes, error=error)
        return Sent(answer=answer, now=carrier._clock.now(), dice=carrier._dice())

    async def _handed_over(self) -> Answer:
        try:
            said = await self._said()
        except (Unavailable, InvalidInput) as error:
            return NotTaken(reason=f"the message could not be read: {error}")
        if said is None:
            return NotTaken(reason="the message is no longer in the log", is_final=True)
        assert self._channel is not None  # noqa: S101 - without one nothing is sent
        answer = await self._channel.sender.send(said, self._order.record.said_seq)
        await self._report(answer)
        return answer

    async def _report(self, answer: Answer) -> None:
        """Tell the circuit how a try ended: who refuses for good is there."""
        passed, self._passed = self._passed, None
        if passed is None:
            return
        circuits = self._carrier._circuits
        is_final = isinstance(answer, NotTaken) and answer.is_final
        if isinstance(answer, Taken) or is_final or answer.is_apart:
            await circuits.succeeded(passed)
        else:
            wait_s = answer.wait_s if isinstance(answer, NotTaken) else 0.0
            await circuits.failed(passed, answer.reason, wait_s)

    async def end(self) -> None:
        """Tell the circuit of a try that never came to the channel."""
        passed, self._passed = self._passed, None
        if passed is not None:
            await self._carrier._circuits.unsaid(passed)


def _outcome(answer: Answer) -> str:
    if isinstance(answer, Taken):
        return "delivered"
    return "refused" if isinstance(answer, NotTaken) else "unknown"
