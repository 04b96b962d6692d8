"""Trying a dead letter of ours again, because a person asked for it (`rpc.requeue.delivery`).

What no channel took gets a new order, which expects the dead one to be the last: asked for twice,
there is one. A turn that could not be read is handled once more, now that it may be readable.
"""

from __future__ import annotations

from typing import Any

import structlog

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import Dispatch, encode
from vigil.errors import VigilError, WrongLastSequence
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import requeue
from vigil.worker.requeue import DONE, GONE, Question, Reply

from . import orders
from .carrier import STREAM, Carrier
from .handlers import Speech
from .orders import Order

log = structlog.get_logger("vigil.delivery")


class Requeues:
    """Answers the gateway."""

    def __init__(self, context: Context, speech: Speech, carrier: Carrier) -> None:
        self._bus: Bus = context.bus
        self._clock: Clock = context.clock
        self._speech = speech
        self._carrier = carrier

    async def answer(self, msg: Any) -> None:
        """Take one question."""
        await self._bus.send(msg.reply, await requeue.reply_to(msg.data, self._again, _fault))

    async def _again(self, question: Question) -> Reply:
        message = await self._bus.get(STREAM, question.seq) if question.stream == STREAM else None
        if message is None or message.subject != question.subject:
            return GONE
        key = SessionKey.of_subject(message.subject)
        if message.subject == key.turn:
            reason = await self._speech.say_again(message)
            return DONE if reason is None else Reply(outcome="refused", reason=reason)
        return await self._order_again(message, by=question.by)

    async def _order_again(self, message: Message, *, by: str) -> Reply:
        key, order = orders.read_order(message.subject, message.seq, message.data)
        seen = await self._carrier.seen(key, order)
        if seen.dispatch_seq > order.seq:
            return DONE
        if (reason := orders.may_requeue(seen)) is not None:
            return Reply(outcome="refused", reason=reason)
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
        headers = {trace.HEADER: trace.passed_on(message.headers.get(trace.HEADER))}
        try:
            await self._bus.publish(message.subject, encode(record), headers, expect=order.seq)
        except WrongLastSequence:
            return  # somebody else's wish came first: that order will do
        log.info(
            "requeued", action="delivery.requeued", session=record.session_key,
            effect=record.effect_id, channel=record.channel, by=record.requeued_by,
        )  # fmt: skip


def _fault(error: Exception) -> str:
    log.error("can't requeue", action="delivery.requeue", error=repr(error))
    return str(error) if isinstance(error, VigilError) else requeue.FAULT
