"""Delivery: reads turns, says what they decided, once and in order.

Any number of replicas share one durable consumer. Nothing is kept here that the log doesn't
have: killed at any point, the turn comes to another replica, which finds out how far it got.
It never decides whether to speak, and holds no cursor of a client: that is the gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from secrets import SystemRandom

from vigil import runtime, topology
from vigil.addressees import is_turn
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.worker import requeue
from vigil.worker.requeue import GONE, RequeueQuestion, RequeueReply
from vigil.worker.worker import Worker

from . import decide, reports, trials
from .carrier import Carrier
from .channels import ComingChannels, OpenChannel, build
from .config import DeliveryLimits
from .handlers import Speech
from .outbox import Outbox


async def serve(context: Context, limits: DeliveryLimits | None = None) -> None:
    """Deliver until cancelled; then finish or give back what is in hand.

    Raises:
        ConfigError: a channel can't work as it is configured.
    """
    settings = context.settings
    configured = settings.config.channels
    limits = limits or DeliveryLimits()
    channels = build(
        configured,
        context.clock,
        limits,
        home=settings.home,
        ports_never=context.bus.broker_ports,
        bus=context.bus,
        console_url=settings.config.gateway.public_url,
    )
    try:
        await _deliver(context, limits, channels)
    finally:
        for channel in channels.values():
            await channel.sender.close()


async def _deliver(
    context: Context, limits: DeliveryLimits, channels: Mapping[str, OpenChannel]
) -> None:
    bus, clock = context.bus, context.clock
    carrier = Carrier(context, channels, limits, SystemRandom().random)
    speech = Speech(bus, clock, limits, context.tracer, context.metrics, carrier.ensure)
    ordered = {name for name, one in context.settings.config.channels.items() if one.is_ordered}
    coming = carrier.ways.coming = ComingChannels(context.settings)
    outbox = Outbox(bus, clock, carrier, limits, ordered, coming)
    switches = await Switches.watch(bus)
    speech.claims.is_gone = carrier.is_gone = switches.is_gone
    config = context.settings.config
    carrier.ways.preferred = lambda user: switches.person(user, config.person_of(user)).channel
    turns = Worker(context, speech, limits.turns, switches.is_gone)
    sends = Worker(context, outbox, limits.sends, switches.is_gone)

    async def again(question: RequeueQuestion) -> RequeueReply:
        if is_turn(question.subject):
            return await turns.again(question)
        order = await sends.stored(question)
        return GONE if order is None else await outbox.order_again(order, by=question.by)

    try:
        async with (
            turns.consuming(topology.DELIVERY_TURNS) as turns_in,
            sends.consuming(topology.DELIVERY_SENDS) as sends_in,
            requeue.answering(bus, decide.SERVICE, again),
            trials.answering(bus, clock, context.new_id, channels),
            reports.answering(bus, carrier),
            asyncio.TaskGroup() as group,
        ):
            group.create_task(turns.run(turns_in), name="delivery-turns")
            group.create_task(sends.run(sends_in), name="delivery-outbox")
            context.ready.set()
    finally:
        await switches.close()


if __name__ == "__main__":
    runtime.main("delivery")
