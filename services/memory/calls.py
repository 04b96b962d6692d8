"""What turns give memory to do: claimed on the log, done, answered (ARCHITECTURE 4).

A call is claimed, run, answered by an event of its session, and only then its turn acknowledged.
The claim tells others that somebody is at it; it forbids nothing, because every memory tool may
run twice: a save has the call's id as its key. So whoever finds a claim without a result runs the
call again, and the first result counts in the fold. Nothing is run for which no session waits any
more.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec
import structlog

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.contracts import CallTool, SaveMemory, encode
from vigil.errors import InvalidInput, NotFound, Unavailable, VigilError, WrongLastSequence
from vigil.memory.answer_text import AnswerText, closed
from vigil.memory.client import Conflict
from vigil.memory.operation import operation_of, tools
from vigil.memory.operations.list import Listed
from vigil.observe import metrics, spans, trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker import results, turns
from vigil.worker.effects import InHand, Tasks
from vigil.worker.open_call import is_awaited
from vigil.worker.turns import session_of

from . import checks, work
from .answers import Answering, Gone
from .config import Limits

log = structlog.get_logger("vigil.memory")

GIVEN_UP: Final = "Memory could not do this; it was logged."


class Calls:
    """Carries out what turns ask of memory (:class:`vigil.worker.effects.Effects`)."""

    service = work.SERVICE
    name = "memory.turn"
    letter = work.LETTER
    tags = work.TAGS

    def __init__(self, context: Context, answering: Answering, limits: Limits) -> None:
        self._bus: Bus = context.bus
        self._clock = context.clock
        self._counts = context.metrics
        self._tracer = context.tracer
        self._instance = context.instance
        self._answering = answering
        self._limits = limits

    def lane_of(self, message: Message) -> str:
        return session_of(message.subject)

    def wanted(self, message: Message) -> list[work.Work]:
        """Return what a turn asks of memory, in order. Raises: InvalidInput."""
        return work.work_of(work.read_turn(message.subject, message.data)[1])

    async def carry_out(self, turn: InHand, effect: work.Work) -> Tasks:
        """Do one thing that a turn asks of memory; may be repeated.

        Raises:
            InvalidInput: it can't be remembered.
            Unavailable: try again later.
        """
        if isinstance(effect, CallTool):
            await self._call(turn.key, effect)
        else:
            await self._remember(turn.key, effect)
        return []

    async def give_up(self, turn: InHand, effect: work.Work, cause: str) -> None:
        """Answer a call that no try could do."""
        if isinstance(effect, CallTool):
            with contextlib.suppress(VigilError):  # its deadline ends it, then
                await self._answer(turn.key, effect, AnswerText(content=GIVEN_UP, is_error=True))
                self._counts.count(metrics.MEMORY_CALLS, _name(effect), "failed")

    # ------------------------------------------------------------ saves

    async def _remember(self, key: SessionKey, effect: SaveMemory) -> None:
        save = checks.save_of(effect, str(key))
        checks.check_content(save.content)
        if effect.payload.rewrites:
            await self._answering.rewrite(key.scope, effect.payload.rewrites, save)
        else:
            with contextlib.suppress(Gone):  # a repeat, of what was forgotten since
                await self._answering.remember(key.scope, save, via="turn")
        crash.point("memory.save.after")

    # ------------------------------------------------------------ calls

    async def _call(self, key: SessionKey, call: CallTool) -> None:
        """Settle a call under a span of its own, which its claim and its result carry."""
        span = self._tracer.begin(trace.current.get())
        token = trace.current.set(span.header)
        try:
            outcome = await self._settle(key, call)
        finally:
            trace.current.reset(token)
        tool = _name(call)
        self._counts.count(metrics.MEMORY_CALLS, tool, outcome)
        if self._tracer.is_on:
            self._tracer.end(
                span,
                spans.MEMORY_TOOL,
                spans.of_tool(str(key), call.id, tool, outcome),
                name=f"execute_tool {tool}",
                error=outcome if outcome == "failed" else "",
            )

    async def _settle(self, key: SessionKey, call: CallTool) -> str:
        """Claim a call, run it and answer it, if its session still waits for that."""
        crash.point("memory.call.before_claim")
        await self._claim(key, call)
        crash.point("memory.call.claimed")
        if not await is_awaited(self._bus, key, call.id):
            log.info(
                "call is closed", action="memory.call_closed", session=str(key), effect=call.id
            )
            return "closed"
        said = await self._run(key, call)
        crash.point("memory.call.ran")
        await self._answer(key, call, said)
        crash.point("memory.call.answered")
        return "failed" if said.is_error else "answered"

    async def _claim(self, key: SessionKey, call: CallTool) -> None:
        """Note that somebody is at it, unless that is noted."""
        claim = turns.claim_of(key, call, by=self._instance, now=self._clock.now())
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}
        try:
            await self._bus.publish(key.call(call.id), encode(claim), headers, expect=0)
        except WrongLastSequence:
            # Ours, whose answer never came; of a replica that crashed; of one that is at it.
            log.info("claimed before", action="memory.claimed", session=str(key), effect=call.id)

    async def _run(self, key: SessionKey, call: CallTool) -> AnswerText:
        """Run a call. Raises: Unavailable, to be tried again."""
        try:
            async with asyncio.timeout(self._limits.call_timeout_s):
                return await self._answered(key, call)
        except InvalidInput as error:
            return AnswerText(content=f"{error.field}: {error.reason}", is_error=True)
        except (Conflict, NotFound) as error:
            return AnswerText(content=str(error), is_error=True)
        except TimeoutError as error:
            raise Unavailable("it takes too long") from error

    async def _answered(self, key: SessionKey, call: CallTool) -> AnswerText:
        question = work.question_of(key, call)
        reply = await self._answering.answer(key.scope, question, via="call")
        if call.payload.is_closed and isinstance(reply, Listed):
            reply = msgspec.structs.replace(reply, memories=tuple(map(closed, reply.memories)))
        return operation_of(type(question)).in_words(reply)

    async def _answer(self, key: SessionKey, call: CallTool, said: AnswerText) -> None:
        event = turns.result_of(
            work.SERVICE,
            key,
            call.id,
            said.content,
            now=self._clock.now(),
            is_error=said.is_error,
            is_tainted=said.is_tainted,
        )
        await results.store(self._bus, key, event)


def _name(call: CallTool) -> str:
    """Return the tool's name, if there is one of that name: a model may ask for anything."""
    return call.payload.tool if call.payload.tool in tools() else "unknown"
