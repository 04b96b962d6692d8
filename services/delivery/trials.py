"""Answers who wants to try a channel: one message, handed over once, on no log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.channels import trial
from vigil.channels.answers import NotTaken, Taken
from vigil.channels.trial import ChannelTrial, ChannelTried
from vigil.clock import Clock
from vigil.contracts import Said

from . import decide
from .channels import OpenChannel

log = structlog.get_logger("vigil.delivery")

GRACE_S: Final = 5.0
"""Beyond a channel's own timeout, after which nothing is waited for."""


@contextlib.asynccontextmanager
async def answering(
    bus: Bus, clock: Clock, new_id: Callable[[], str], channels: Mapping[str, OpenChannel]
) -> AsyncIterator[None]:
    """Answer for as long as the block lasts; of several replicas, one does."""

    async def answer(msg: Any) -> None:
        await bus.send(msg.reply, msgspec.json.encode(await _answer(msg.data)))

    async def _answer(data: bytes) -> ChannelTried:
        try:
            asked = trial.decode(data)
        except msgspec.MsgspecError as error:
            return ChannelTried(outcome="not_taken", reason=f"the question can't be read: {error}")
        return await _try(asked, channels.get(asked.channel), clock, new_id())

    subscription = await bus.listen(trial.SUBJECT, answer, queue=decide.SERVICE)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()


async def _try(
    asked: ChannelTrial, channel: OpenChannel | None, clock: Clock, id_: str
) -> ChannelTried:
    if channel is None:
        return ChannelTried(outcome="unknown_channel")
    said = Said(
        id=id_,
        session_key=asked.session_key,
        text=trial.TEXT.format(channel=asked.channel, by=asked.by),
        at=clock.now(),
        caused_by="",
        turn_seq=0,
        channel=asked.channel,
    )
    try:
        async with asyncio.timeout(channel.terms.patience_s + GRACE_S):
            found = await channel.sender.send(said, 0)
    except TimeoutError:
        return ChannelTried(outcome="unclear", reason="no answer came in time")
    log.info("tried", action="delivery.tried", channel=asked.channel, by=asked.by)
    if isinstance(found, Taken):
        return ChannelTried(outcome="taken", reason=found.reason)
    if isinstance(found, NotTaken):
        return ChannelTried(outcome="not_taken", reason=found.reason)
    return ChannelTried(outcome="unclear", reason=found.reason)
