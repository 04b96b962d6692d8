"""Delivery: reads turns, says what they decided, once and in order.

Any number of replicas share one durable consumer. Nothing is kept here that the log doesn't
have: killed at any point, the turn comes to another replica, which finds out how far it got.
It never decides whether to speak, and holds no cursor of a client: that is the gateway.
"""

from __future__ import annotations

import asyncio

import structlog

from vigil import runtime, topology
from vigil.bus import Message, Puller
from vigil.contracts import EFFECTS_HEADER
from vigil.errors import Unavailable
from vigil.runtime import Context

from . import decide
from .config import Limits
from .handlers import Speech
from .lanes import Lanes

log = structlog.get_logger("vigil.delivery")


async def serve(context: Context) -> None:
    """Deliver until cancelled; then finish or give back what is in hand."""
    limits = Limits()
    speech = Speech(context.bus, context.clock, limits)
    puller = await context.bus.pull(topology.DELIVERY_TURNS)
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(speech.handle, speech.give_back, group, turns_max=limits.turns_in_hand_max)
        context.ready.set()
        try:
            await _pull(context, puller, lanes)
        finally:
            for turn in await lanes.stop(grace_s=limits.stop_grace_s):
                await speech.leave(turn)
            await puller.close()


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
