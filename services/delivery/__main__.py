"""Delivery: reads turns, says what they decided, once and in order.

Any number of replicas share one durable consumer. Nothing is kept here that the log doesn't
have: killed at any point, the turn comes to another replica, which finds out how far it got.
It never decides whether to speak, and holds no cursor of a client: that is the gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from secrets import SystemRandom

import structlog

from vigil import runtime, topology
from vigil.bus.bus import Message, Puller
from vigil.contracts import EFFECTS_HEADER, SOCKET
from vigil.errors import Unavailable
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.worker import requeue

from . import decide
from .carrier import Carrier
from .channels import OpenChannel, build
from .config import Limits
from .handlers import Speech
from .lanes import Lanes
from .outbox import Outbox
from .requeue import Requeues

log = structlog.get_logger("vigil.delivery")


async def serve(context: Context, limits: Limits | None = None) -> None:
    """Deliver until cancelled; then finish or give back what is in hand.

    Raises:
        ConfigError: a channel can't work as it is configured.
    """
    settings = context.settings
    configured = settings.config.channels
    limits = limits or Limits(channels=frozenset({SOCKET, *configured}))
    channels = build(
        configured, context.clock, limits,
        home=settings.home, ports_never=context.bus.broker_ports,
    )  # fmt: skip
    try:
        await _deliver(context, limits, channels)
    finally:
        for channel in channels.values():
            await channel.sender.close()


async def _deliver(context: Context, limits: Limits, channels: Mapping[str, OpenChannel]) -> None:
    bus, clock = context.bus, context.clock
    carrier = Carrier(context, channels, limits, SystemRandom().random)
    speech = Speech(bus, clock, limits, context.tracer, context.metrics, carrier.ensure)
    requeues = Requeues(context, speech, carrier)
    switches = await Switches.watch(bus)
    speech.claims.is_erasing = carrier.is_erasing = switches.is_erasing
    turns = await bus.pull(topology.DELIVERY_TURNS)
    orders = await bus.pull(topology.DELIVERY_SENDS)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(speech.handle, speech.give_back, group, turns_max=limits.turns_in_hand_max)
        outbox = Outbox(bus, clock, carrier, limits, group)
        sending = group.create_task(outbox.run(orders), name="delivery-outbox")
        await bus.listen(requeue.subject_of(decide.SERVICE), requeues.answer, queue=decide.SERVICE)
        context.ready.set()
        try:
            await _pull(context, turns, lanes)
        finally:
            sending.cancel()
            grace_s = limits.stop_grace_s
            left, _ = await asyncio.gather(
                lanes.stop(grace_s=grace_s), outbox.stop(grace_s=grace_s)
            )
            for turn in left:
                await speech.leave(turn)
            await turns.close()
            await orders.close()
            await switches.close()


async def _pull(context: Context, puller: Puller, lanes: Lanes) -> None:
    while True:
        try:
            turn = await anext(puller)
            await _take(context, turn, lanes)
        except Unavailable as error:
            # The connection comes back by itself, and the puller asks again then.
            log.warning("can't pull", action="delivery.pull", error=str(error))
            await asyncio.sleep(0.1)


async def _take(context: Context, turn: Message, lanes: Lanes) -> None:
    if not decide.may_speak(turn.headers.get(EFFECTS_HEADER), turn.data):
        await context.bus.ack(turn)
        return
    lanes.put(turn)
    await lanes.room()


if __name__ == "__main__":
    runtime.main("delivery")
