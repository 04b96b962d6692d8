"""Trying a dead letter of the scheduler again, because a person asked (`rpc.requeue.scheduler`).

Only the active scheduler answers. A turn that could not be read is handled once more, now that
it may be readable; what it asks for may be carried out twice, harmlessly. What the broker fired
and nobody could read was deleted, so there is nothing to try again.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog

from vigil.bus.bus import Bus
from vigil.observe.trace import HEADER
from vigil.subjects import stream_of
from vigil.worker import requeue
from vigil.worker.requeue import DONE, GONE, Question, Reply

from . import decide
from .decide import Changes
from .store import SERVICE

log = structlog.get_logger("vigil.scheduler")

CarryOut = Callable[[Changes], Awaitable[None]]


@contextlib.asynccontextmanager
async def answering(bus: Bus, carry_out: CarryOut) -> AsyncIterator[None]:
    """Answer for as long as the block lasts."""

    async def answer(msg: Any) -> None:
        await bus.send(msg.reply, await requeue.reply_to(msg.data, again, _fault))

    async def again(question: Question) -> Reply:
        return await _again(bus, carry_out, question)

    subscription = await bus.listen(requeue.subject_of(SERVICE), answer, queue=SERVICE)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()


def _fault(error: Exception) -> str:
    log.error("can't requeue", action="scheduler.requeue", error=repr(error))
    return requeue.FAULT


async def _again(bus: Bus, carry_out: CarryOut, question: Question) -> Reply:
    if question.stream != stream_of(question.subject):
        return GONE
    message = await bus.get(question.stream, question.seq)
    if message is None or message.subject != question.subject:
        return GONE
    await carry_out(decide.changes_of(message.subject, message.data, message.headers.get(HEADER)))
    return DONE
