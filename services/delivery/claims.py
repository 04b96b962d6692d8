"""Settling on the bus: drives :func:`services.delivery.decide.settle` with real answers.

Everything here may be repeated: a claim has an expectation, a receipt is written only where
there is none. After an answer that never came, nothing remembered counts; the log is read.
It doesn't acknowledge turns and doesn't order them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog

from vigil import crash, topology
from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import SendMessage, decode_receipt, encode
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import metrics, spans, trace
from vigil.observe.metrics import Metrics
from vigil.observe.trace import Tracer
from vigil.subjects import SessionKey

from . import decide
from .config import DeliveryLimits, patience_of
from .decide import Await, Claim, Close, Find, Read, Tail

log = structlog.get_logger("vigil.delivery")

STREAM: Final = topology.DELIVERY_TURNS.stream

Wait = Callable[[SessionKey, str], Awaitable[Tail]]


class Claims:
    """Settles sends, and remembers the last one of each session."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        limits: DeliveryLimits,
        tracer: Tracer = trace.OFF,
        counts: Metrics | None = None,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._limits = limits
        self._tracer = tracer
        self._counts = counts or Metrics(decide.SERVICE)
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self.is_gone: Callable[[SessionKey], bool] = lambda key: False
        """Whether a session is being deleted: nothing is said in it any more."""

    async def settle(self, key: SessionKey, send: SendMessage, turn: Message, wait: Wait) -> Tail:
        """Say a send, or close it with a receipt; harmless to repeat.

        Args:
            turn: the message of the turn that decided it.
            wait: waits for the send before it; what it raises ends the attempt.

        Raises:
            Unavailable: the broker did not answer for some seconds; try again later.
            BusError: the broker refused.
        """
        attempt = _Attempt(self, key, send, turn, wait)
        tail = await attempt.run(self._tails.get(turn.subject))
        if attempt.outcome:
            attempt.observe()
        self._tails[turn.subject] = tail
        self._tails.move_to_end(turn.subject)
        if len(self._tails) > self._limits.tails_max:
            self._tails.popitem(last=False)
        return tail

    async def find(self, key: SessionKey, effect_id: str) -> Tail | None:
        """Return the tail of a send that is said or has a receipt, else None."""
        message = await self._bus.get_last(STREAM, key.out_said(effect_id))
        if message is not None:
            return decide.found_said(effect_id, message.seq)
        if await self._bus.get_last(STREAM, key.receipt(effect_id)) is not None:
            return Tail(effect_id)
        return None

    async def close(self, key: SessionKey, effect_id: str, close: Close, traceparent: str) -> bool:
        """Write a receipt unless there is one; return whether this one was written."""
        record = decide.receipt(key, effect_id, close, now=self._clock.now())
        try:
            await self._bus.publish(
                key.receipt(effect_id), encode(record), {trace.HEADER: traceparent}, expect=0
            )
        except WrongLastSequence:
            return False
        log.info(
            "send closed",
            action=f"delivery.{close.outcome}",
            session=str(key),
            effect=effect_id,
            reason=close.reason,
        )
        return True

    async def failure(self, key: SessionKey, effect_id: str) -> str | None:
        """Return why a send that was never said was closed as failed; None: it wasn't."""
        if await self._bus.get_last(STREAM, key.out_said(effect_id)) is not None:
            return None
        found = await self._bus.get_last(STREAM, key.receipt(effect_id))
        if found is None:
            return None
        record = decode_receipt(found.data)
        return record.reason if record.outcome == "failed" else None

    async def is_decided(self, key: SessionKey, effect_id: str, *, before: int) -> bool:
        """Tell whether a turn stored before sequence `before` decided that send.

        `before` is a turn's own sequence: a reading that does not reach it proves nothing,
        and counts as yes.
        """
        needle = effect_id.encode()
        seq = 0
        while seq < before:
            page = await self.page(key.turns, seq)
            if not page:
                return True
            for message in page:
                seq = message.seq
                if seq < before and needle in message.data and _holds(message, effect_id):
                    return True
        return False

    async def page(self, subject: str, after: int) -> list[Message]:
        """Read a page of what is stored on `subject` after a sequence."""
        try:
            async with asyncio.timeout(self._limits.read_timeout_s):
                return await self._bus.read(
                    STREAM, [subject], after + 1, limit=self._limits.page_messages
                )
        except TimeoutError as error:
            raise Unavailable(f"{subject}: reading took too long") from error


def _holds(message: Message, effect_id: str) -> bool:
    try:
        _, turn = decide.read_turn(message.subject, message.data)
    except InvalidInput:
        return False
    return decide.holds(turn, effect_id)


class _Attempt:
    """One run of the protocol for one send."""

    def __init__(
        self, claims: Claims, key: SessionKey, send: SendMessage, turn: Message, wait: Wait
    ) -> None:
        self._claims = claims
        self._bus = claims._bus
        self._key = key
        self._send = send
        self._turn = turn
        self._wait = wait
        self._data: bytes | None = None
        self._losses = 0
        self._patience = patience_of(claims._limits, key, send.id)
        self._span = claims._tracer.begin(turn.header(trace.HEADER))
        self.outcome = ""
        """What this attempt did: "said", or its receipt; empty: somebody had done it before."""
        trace.current.set(self._span.header)

    def observe(self) -> None:
        """Count what was done, and record its span."""
        claims, turn = self._claims, self._turn
        claims._counts.count(metrics.SENDS, self.outcome)
        if self.outcome == "said" and turn.token:
            lag_s = (claims._clock.now() - turn.stored_at).total_seconds()
            claims._counts.observe(metrics.DELIVERY_LAG, metrics.seconds(lag_s))
        if claims._tracer.is_on:
            about = {spans.SESSION: str(self._key), spans.EFFECT: self._send.id}
            about[spans.OUTCOME] = self.outcome
            error = self.outcome if self.outcome == "failed" else ""
            claims._tracer.end(self._span, spans.SAY, about, error=error)

    async def run(self, tail: Tail | None) -> Tail:
        """Answer what the protocol asks until the send is settled."""
        is_repeat = self._turn.delivered > 1
        asks = decide.settle(self._key, self._send, tail, is_repeat=is_repeat)
        answer: Any = None
        while True:
            try:
                ask = asks.send(answer)
            except StopIteration as end:
                settled: Tail = end.value
                return settled
            if isinstance(ask, Claim):
                answer = await self._claim(ask.expect)
            elif isinstance(ask, Await):
                answer = await self._wait(self._key, ask.effect_id)
            else:
                answer = await self._patience.run(partial(self._on_the_log, ask))

    async def _claim(self, expect: int) -> int | None:
        if self._data is None:
            record = decide.said(
                self._key, self._send, turn_seq=self._turn.seq, now=self._claims._clock.now()
            )
            self._data = encode(record)
        crash.point("delivery.claim.before")
        if self._losses:
            expect = await self._still_there(expect)
        try:
            ack = await self._bus.publish(
                self._key.out_said(self._send.id),
                self._data,
                {trace.HEADER: self._span.header},
                expect=expect,
                expect_subject=self._key.transcript,
            )
        except WrongLastSequence:
            self._claims._counts.count(metrics.CLAIMS_LOST)
            await self._after_loss()
            return None
        except Unavailable as error:
            await self._patience.after(error)
            return None
        crash.point("delivery.claim.after")
        self.outcome = "said"
        return ack.seq

    async def _on_the_log(self, ask: Find | Read | Close) -> Any:
        """Do what only reads or may be repeated."""
        if isinstance(ask, Read):
            return await self._read(ask.after)
        if isinstance(ask, Find):
            return await self._claims.find(self._key, ask.effect_id)
        if await self._claims.close(self._key, self._send.id, ask, self._span.header):
            self.outcome = ask.outcome
        if ask.outcome == "void":
            crash.point("delivery.void.after_receipt")
        return None

    async def _read(self, after: int) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        size = self._claims._limits.page_messages
        while True:
            page = await self._claims.page(self._key.transcript, after)
            found += [(message.subject, message.seq) for message in page]
            if len(page) < size:
                return found
            after = page[-1].seq

    async def _still_there(self, expect: int) -> int:
        """Return what may be expected where `expect` was read, if that is gone by now.

        A record that is too old is removed, and the broker then goes by the one before it.

        Raises:
            Unavailable: the session is being deleted, and with it everything that was expected.
        """
        if self._claims.is_gone(self._key):
            raise Unavailable(f"{self._key} is being deleted")
        last = await self._bus.get_last(STREAM, self._key.transcript)
        seq = 0 if last is None else last.seq
        return min(seq, expect)

    async def _after_loss(self) -> None:
        # The first loss is ordinary: a replica without memory, a person who wrote meanwhile.
        if self._losses:
            await asyncio.sleep(self._claims._limits.after_loss.after(self._losses))
        self._losses += 1
