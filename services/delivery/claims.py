"""Settling on the bus: drives :func:`services.delivery.decide.settle` with real answers.

Everything here may be repeated: a claim has an expectation, a receipt is written only where
there is none. After an answer that never came, nothing remembered counts; the log is read.
It doesn't acknowledge turns and doesn't order them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from vigil import crash, topology, trace
from vigil.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import SendMessage, encode
from vigil.errors import InvalidInput, OutcomeUnknown, Unavailable, WrongLastSequence
from vigil.subjects import SessionKey

from . import decide
from .config import Limits
from .decide import Await, Claim, Close, Find, Read, Tail

log = structlog.get_logger("vigil.delivery")

STREAM: Final = topology.DELIVERY_TURNS.stream

Wait = Callable[[SessionKey, str], Awaitable[Tail]]


class Claims:
    """Settles sends, and remembers the last one of each session."""

    def __init__(self, bus: Bus, clock: Clock, limits: Limits) -> None:
        self._bus = bus
        self._clock = clock
        self._limits = limits
        self._tails: OrderedDict[str, Tail] = OrderedDict()

    async def settle(self, key: SessionKey, send: SendMessage, turn: Message, wait: Wait) -> Tail:
        """Say a send, or close it with a receipt; harmless to repeat.

        Args:
            turn: the message of the turn that decided it.
            wait: waits for the send before it; what it raises ends the attempt.

        Raises:
            Unavailable: the broker did not answer for some seconds; try again later.
            BusError: the broker refused.
        """
        tail = await _Attempt(self, key, send, turn, wait).run(self._tails.get(turn.subject))
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

    async def close(self, key: SessionKey, effect_id: str, close: Close, turn: Message) -> None:
        """Write a receipt unless there is one."""
        record = decide.receipt(key, effect_id, close, now=self._clock.now())
        try:
            await self._bus.publish(
                key.receipt(effect_id), encode(record), _headers(turn), expect=0
            )
        except WrongLastSequence:
            return
        log.info(
            "send closed", action=f"delivery.{close.outcome}", session=str(key),
            effect=effect_id, reason=close.reason,
        )  # fmt: skip

    async def is_decided(self, key: SessionKey, effect_id: str, *, before: int) -> bool:
        """Tell whether a turn stored before sequence `before` decided that send.

        `before` is a turn's own sequence: a reading that does not reach it proves nothing,
        and counts as yes.
        """
        needle = effect_id.encode()
        seq = 0
        while seq < before:
            page = await self.page(key.turn, seq)
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


def _headers(turn: Message) -> dict[str, str]:
    return {trace.HEADER: trace.child(turn.headers.get(trace.HEADER))}


class _Attempt:
    """One run of the protocol for one send."""

    __slots__ = ("_bus", "_claims", "_data", "_failures", "_key", "_losses", "_send", "_turn",
                 "_wait")  # fmt: skip

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
        self._failures = 0

    async def run(self, tail: Tail | None) -> Tail:
        """Answer what the protocol asks until the send is settled."""
        asks = decide.settle(
            self._key,
            self._send,
            tail,
            is_repeat=self._turn.delivered > 1,
            channels=self._claims._limits.channels,
        )
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
                answer = await self._patiently(ask)

    async def _claim(self, expect: int) -> int | None:
        if self._data is None:
            record = decide.said(
                self._key, self._send, turn_seq=self._turn.seq, now=self._claims._clock.now()
            )
            self._data = encode(record)
        crash.point("delivery.claim.before")
        try:
            ack = await self._bus.publish(
                self._key.out_said(self._send.id),
                self._data,
                _headers(self._turn),
                expect=expect,
                expect_subject=self._key.transcript,
            )
        except WrongLastSequence:
            await self._after_loss()
            return None
        except Unavailable as error:
            await self._after_failure(error)
            return None
        crash.point("delivery.claim.after")
        return ack.seq

    async def _patiently(self, ask: Find | Read | Close) -> Any:
        """Do what only reads or may be repeated, again while the broker is away."""
        while True:
            try:
                if isinstance(ask, Read):
                    return await self._read(ask.after)
                if isinstance(ask, Find):
                    return await self._claims.find(self._key, ask.effect_id)
                await self._claims.close(self._key, self._send.id, ask, self._turn)
            except Unavailable as error:
                await self._after_failure(error)
                continue
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

    async def _after_loss(self) -> None:
        limits = self._claims._limits
        # The first loss is ordinary: a replica without memory, a person who wrote meanwhile.
        if self._losses:
            delay_s = limits.loss_wait_s * 2.0 ** min(self._losses, 10)
            await asyncio.sleep(min(delay_s, limits.loss_wait_max_s))
        self._losses += 1

    async def _after_failure(self, error: Unavailable) -> None:
        waits_s = self._claims._limits.failure_waits_s
        if self._failures >= len(waits_s):
            raise error
        log.info(
            "no answer", action="delivery.retry", session=str(self._key), effect=self._send.id,
            is_unknown=isinstance(error, OutcomeUnknown), error=str(error),
        )  # fmt: skip
        await asyncio.sleep(waits_s[self._failures])
        self._failures += 1
