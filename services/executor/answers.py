"""The results of calls, stored as events of the sessions that wait for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from vigil.contracts import CallTool, ToolResultEvent, decode_event, encode
from vigil.errors import InvalidInput, Unavailable
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import turns

from . import work
from .config import Limits
from .tools.source import Told

log = structlog.get_logger("vigil.executor")

RESULT: Final = "tool_result"


class Answers:
    """Writes and finds results."""

    def __init__(self, context: Context, limits: Limits) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._limits = limits

    async def store(self, key: SessionKey, call: CallTool, told: Told) -> None:
        """Store the result of a call; a repeat stores the same event, and the first one counts.

        It is tried for as long as anybody may wait for it, because what is lost here can't be
        found out by running the tool again.

        Raises:
            Unavailable: not even then.
            BusError: the broker refused.
        """
        event = turns.result_of(
            work.SERVICE,
            key,
            call.id,
            told.content,
            now=self._clock.now(),
            is_error=told.is_error,
            is_tainted=told.is_tainted,
        )
        until = call.payload.due_at + timedelta(seconds=self._limits.answer_late_s)
        pause_s = self._limits.again_first_s
        while True:
            try:
                return await self._publish(key, event)
            except Unavailable as error:
                if self._clock.now() > until:
                    raise
                log.info("answering again", action="executor.answer", error=str(error))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._limits.again_max_s)

    async def _publish(self, key: SessionKey, event: ToolResultEvent) -> None:
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}
        await self._bus.publish(key.in_event(RESULT), encode(event), headers, msg_id=event.id)

    async def is_there(self, key: SessionKey, call: CallTool, since: int) -> bool:
        """Whether a result is stored.

        Args:
            since: the sequence of the claim, which came before it.
        """
        seq = since
        while (
            found := await self._bus.get_next(key.stream, key.in_event(RESULT), seq)
        ) is not None:
            seq = found.seq + 1
            try:
                event = decode_event(found.data)
            except InvalidInput:
                continue
            if isinstance(event, ToolResultEvent) and event.payload.call_id == call.id:
                return True
        return False
