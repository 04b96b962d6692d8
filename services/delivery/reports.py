"""Settles what a channel's server reports: what was ambiguous is delivered, what bounced failed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.channels import report
from vigil.channels.report import ChannelReport, ReportTaken
from vigil.errors import InvalidInput, VigilError
from vigil.subjects import SessionKey, check_part
from vigil.worker import dead_letters

from . import decide, orders
from .carrier import STREAM, Carrier
from .dispatch import REASON_LENGTH_MAX, StoreReceipt

log = structlog.get_logger("vigil.delivery")

TRIES_MAX: Final = 5
"""Of storing it, while others store what they know of the same message."""


@contextlib.asynccontextmanager
async def answering(bus: Bus, carrier: Carrier) -> AsyncIterator[None]:
    """Answer for as long as the block lasts; of several replicas, one does."""

    async def answer(msg: Any) -> None:
        try:
            found = await settle(bus, carrier, report.decode(msg.data))
        except (msgspec.MsgspecError, InvalidInput):
            found = ReportTaken(outcome="unknown")
        except VigilError as error:
            log.info("report waits", action="delivery.report", error=str(error))
            found = ReportTaken(outcome="later")
        await bus.send(msg.reply, msgspec.json.encode(found))

    subscription = await bus.listen(report.SUBJECT, answer, queue=decide.SERVICE)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()


async def settle(bus: Bus, carrier: Carrier, incoming: ChannelReport) -> ReportTaken:
    """Store what a report says, if it says more than is known; may be repeated.

    Raises:
        Unavailable, BusError: the broker can't tell.
        InvalidInput: it names no message, or what is stored of it can't be read.
    """
    key = SessionKey.parse(incoming.session_key)
    stored = await bus.get_last(STREAM, key.send(check_part("effect_id", incoming.effect_id)))
    if stored is None:
        return ReportTaken(outcome="unknown")
    _, order = orders.read_order(stored.subject, stored.seq, stored.data)
    if order.record.channel != incoming.channel:
        return ReportTaken(outcome="unknown")
    says = "delivered it" if incoming.is_delivered else "gave it up"
    reason = f"the server reports that it {says}: {incoming.reason}"[:REASON_LENGTH_MAX]
    for _ in range(TRIES_MAX):
        seen = await carrier.seen(key, order)
        outcome = orders.outcome_by_report(seen, is_delivered=incoming.is_delivered)
        if outcome is None:
            return ReportTaken(outcome="known")
        close = StoreReceipt(outcome=outcome, reason=reason, expect=seen.receipt_seq)
        if await carrier.close(key, order, stored, close):
            await carrier.carry(key, order, stored)  # what failed becomes a dead letter
            letter = dead_letters.id_of(decide.SERVICE, stored.stream, order.seq)
            return ReportTaken(outcome="settled", letter_id=letter if incoming.is_delivered else "")
    return ReportTaken(outcome="later")
