"""Trying a dead letter of memory again, because a person asked for it (`rpc.requeue.memory`).

A turn is carried out once more, now that it may be readable; what it asked for and was done is
found done. A record of MEMORIES has its place among the others, so it can't be taken in later: a
rebuild reads it again where it stands.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from vigil import requeue, topology
from vigil.bus import Bus
from vigil.errors import InvalidInput, Unavailable
from vigil.requeue import Question, Reply

from . import work
from .calls import Calls
from .saving import STREAM as MEMORIES

log = structlog.get_logger("vigil.memory")

SUBJECT: Final = requeue.subject_of(work.SERVICE)
GONE: Final = Reply(outcome="refused", reason="it is no longer in the log")
REBUILD: Final = Reply(
    outcome="refused", reason="a record has its place in the log: `vigil memory rebuild` reads it"
)


class Requeues:
    """Answers the gateway."""

    def __init__(self, bus: Bus, calls: Calls) -> None:
        self._bus = bus
        self._calls = calls

    async def answer(self, msg: Any) -> None:
        """Take one question; never raises, or the subscription would end."""
        try:
            question = requeue.decode_question(msg.data)
            async with asyncio.timeout(requeue.WORK_TIMEOUT_S):
                reply = await self._again(question)
        except InvalidInput as error:
            reply = Reply(outcome="refused", reason=f"still can't be used: {error}")
        except (Unavailable, TimeoutError) as error:
            reply = Reply(outcome="later", reason=str(error) or "it takes too long")
        except Exception as error:
            log.error("can't requeue", action="memory.requeue", error=repr(error))
            reply = Reply(outcome="refused", reason="something went wrong; it was logged")
        await self._bus.send(msg.reply, requeue.encode(reply))

    async def _again(self, question: Question) -> Reply:
        if question.stream == MEMORIES:
            return REBUILD
        if question.stream != topology.MEMORY_TURNS.stream:
            return GONE
        turn = await self._bus.get(question.stream, question.seq)
        if turn is None or turn.subject != question.subject:
            return GONE
        await self._calls.carry_out(turn)
        return Reply(outcome="done")
