"""Trying a dead letter of the scheduler again, because a person asked (`rpc.requeue.scheduler`).

Only the active scheduler answers. A turn that could not be read is handled once more, now that
it may be readable; what it asks for may be carried out twice, harmlessly. What the broker fired
and nobody could read was deleted, so there is nothing to try again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import structlog

from vigil import requeue
from vigil.bus import Bus
from vigil.errors import InvalidInput, Unavailable
from vigil.requeue import Question, Reply
from vigil.topology import SCHEDULER_TURNS
from vigil.trace import HEADER

from . import decide
from .decide import Changes
from .store import SERVICE

log = structlog.get_logger("vigil.scheduler")

CarryOut = Callable[[Changes], Awaitable[None]]
GONE: Final = Reply(outcome="refused", reason="it is no longer in the log")


@contextlib.asynccontextmanager
async def answering(bus: Bus, carry_out: CarryOut) -> AsyncIterator[None]:
    """Answer for as long as the block lasts."""

    async def answer(msg: Any) -> None:
        await bus.send(msg.reply, requeue.encode(await _reply(bus, carry_out, msg.data)))

    subscription = await bus.listen(requeue.subject_of(SERVICE), answer, queue=SERVICE)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()


async def _reply(bus: Bus, carry_out: CarryOut, data: bytes) -> Reply:
    try:
        question = requeue.decode_question(data)
        async with asyncio.timeout(requeue.WORK_TIMEOUT_S):
            return await _again(bus, carry_out, question)
    except InvalidInput as error:
        return Reply(outcome="refused", reason=f"still can't be read: {error}")
    except (Unavailable, TimeoutError) as error:
        return Reply(outcome="later", reason=str(error) or "it takes too long")
    except Exception as error:
        log.error("can't requeue", action="scheduler.requeue", error=repr(error))
        return Reply(outcome="refused", reason="something went wrong; it was logged")


async def _again(bus: Bus, carry_out: CarryOut, question: Question) -> Reply:
    if question.stream != SCHEDULER_TURNS.stream:
        return GONE
    message = await bus.get(question.stream, question.seq)
    if message is None or message.subject != question.subject:
        return GONE
    await carry_out(decide.changes_of(message.subject, message.data, message.headers.get(HEADER)))
    return Reply(outcome="done")
