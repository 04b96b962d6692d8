"""Trying a dead letter of the executor again, because a person asked (`rpc.requeue.executor`).

A turn is carried out once more, now that it may be readable. What of it was done is found done, and
a call that may have run doesn't run again.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from vigil import topology
from vigil.bus.bus import Bus
from vigil.worker import requeue
from vigil.worker.requeue import DONE, GONE, Question, Reply

from . import work
from .turns import Handling

log = structlog.get_logger("vigil.executor")

SUBJECT: Final = requeue.subject_of(work.SERVICE)
STREAMS: Final = (topology.EXECUTOR_TURNS.stream, topology.EXECUTOR_TURNS_SYSTEM.stream)


class Requeues:
    """Answers the gateway."""

    def __init__(self, bus: Bus, handling: Handling) -> None:
        self._bus = bus
        self._handling = handling

    async def answer(self, msg: Any) -> None:
        """Take one question."""
        reply = await requeue.reply_to(msg.data, self._again, _fault, use="carried out")
        await self._bus.send(msg.reply, reply)

    async def _again(self, question: Question) -> Reply:
        if question.stream not in STREAMS:
            return GONE
        turn = await self._bus.get(question.stream, question.seq)
        if turn is None or turn.subject != question.subject:
            return GONE
        await self._handling.again(turn)
        return DONE


def _fault(error: Exception) -> str:
    log.error("can't requeue", action="executor.requeue", error=repr(error))
    return requeue.FAULT
