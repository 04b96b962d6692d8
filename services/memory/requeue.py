"""Trying a dead letter of memory again, because a person asked for it (`rpc.requeue.memory`).

A turn is carried out once more, now that it may be readable; what it asked for and was done is
found done. A record of MEMORIES has its place among the others, so it can't be taken in later: a
rebuild reads it again where it stands.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from vigil.bus.bus import Bus
from vigil.subjects import stream_of
from vigil.worker import requeue
from vigil.worker.requeue import DONE, GONE, Question, Reply

from . import work
from .calls import Calls
from .store.writes import STREAM as MEMORIES

log = structlog.get_logger("vigil.memory")

SUBJECT: Final = requeue.subject_of(work.SERVICE)
REBUILD: Final = Reply(
    outcome="refused", reason="a record has its place in the log: `vigil memory rebuild` reads it"
)


class Requeues:
    """Answers the gateway."""

    def __init__(self, bus: Bus, calls: Calls) -> None:
        self._bus = bus
        self._calls = calls

    async def answer(self, msg: Any) -> None:
        """Take one question."""
        reply = await requeue.reply_to(msg.data, self._again, _fault, use="used")
        await self._bus.send(msg.reply, reply)

    async def _again(self, question: Question) -> Reply:
        if question.stream == MEMORIES:
            return REBUILD
        if question.stream != stream_of(question.subject):
            return GONE
        turn = await self._bus.get(question.stream, question.seq)
        if turn is None or turn.subject != question.subject:
            return GONE
        await self._calls.carry_out(turn)
        return DONE


def _fault(error: Exception) -> str:
    log.error("can't requeue", action="memory.requeue", error=repr(error))
    return requeue.FAULT
