"""What is done with a turn: say its sends in order, then acknowledge it.

Failures and what they become: an unreadable turn is a dead letter; a broker that is away, or a
send before it that isn't settled, gives the turn back; what the broker refuses for good is a
receipt `failed` and a dead letter after some tries, so that what comes after it can go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import SendMessage
from vigil.errors import InvalidInput, Unavailable, VigilError
from vigil.observe import metrics, trace
from vigil.observe.metrics import Metrics
from vigil.observe.trace import Tracer
from vigil.subjects import SessionKey
from vigil.worker import dead_letters

from . import decide
from .claims import STREAM, Claims
from .config import Limits
from .decide import Close, Tail
from .lanes import Fate, Lane

log = structlog.get_logger("vigil.delivery")


class NotYet(VigilError):
    """The send before this one isn't settled: try again later."""


class Overtaken(VigilError):
    """An older turn of the session is here: that one first."""


async def _nothing_to_order(key: SessionKey, send: SendMessage, turn: Message) -> None:
    """With the socket alone, the claim is the delivery."""


Ensure = Callable[[SessionKey, SendMessage, Message], Awaitable[None]]
"""Orders what was said over another channel, if it was; may be repeated."""


class Speech:
    """Handles turns, one at a time for each session.

    Args:
        ensure: called for each settled send, before its turn is acknowledged.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        limits: Limits,
        tracer: Tracer = trace.OFF,
        counts: Metrics | None = None,
        ensure: Ensure = _nothing_to_order,
    ) -> None:
        self._ensure = ensure
        self._bus = bus
        self._clock = clock
        self._limits = limits
        self._counts = counts or Metrics(decide.SERVICE)
        self.claims = Claims(bus, clock, limits, tracer, self._counts)

    async def handle(self, turn: Message, lane: Lane) -> Fate:
        """Settle what the turn says and acknowledge it; never raises but when cancelled."""
        crash.point("delivery.turn.received")
        if self.claims.is_erasing(SessionKey.of_subject(turn.subject).user):
            await self._ack(turn)
            return Fate.FINISHED
        try:
            await self._speak(turn, lane)
        except Overtaken:
            return Fate.OVERTAKEN
        except (NotYet, Unavailable) as error:
            log.info(
                "turn given back", action="delivery.give_back", subject=turn.subject,
                seq=turn.seq, delivered=turn.delivered, error=str(error),
            )  # fmt: skip
            await self.give_back(turn)
            return Fate.GIVEN_BACK
        except Exception as error:
            # Refused by the broker, or a bug: neither may end the lane or retry for ever.
            return await self._refused(turn, error)
        return Fate.FINISHED

    async def _speak(self, turn: Message, lane: Lane) -> None:
        try:
            key, record = decide.read_turn(turn.subject, turn.data)
        except InvalidInput as error:
            await self._bury(turn, str(error))
            return

        async def wait(key: SessionKey, effect_id: str) -> Tail:
            return await self._predecessor(key, effect_id, turn, lane)

        for send in decide.sends_of(record):
            await self.claims.settle(key, send, turn, wait)
            await self._ensure(key, send, turn)
        await self._ack(turn)

    async def say_again(self, turn: Message) -> str | None:
        """Do once more what a turn asks for -> None, or why it can't be any more.

        Args:
            turn: read from the log, because a person asked for it.

        Raises:
            InvalidInput: it can't be read.
            Unavailable: the broker did not answer, or a send before it isn't settled yet.
        """
        key, record = decide.read_turn(turn.subject, turn.data)
        again = Message(turn.subject, turn.data, turn.headers, turn.seq, delivered=2)

        async def wait(key: SessionKey, effect_id: str) -> Tail:
            found = await self.claims.find(key, effect_id)
            if found is not None:
                return found
            if await self.claims.is_decided(key, effect_id, before=turn.seq):
                raise Unavailable(f"the send {effect_id} before it is not settled yet")
            return Tail(effect_id)

        sends = decide.sends_of(record)
        for send in sends:
            await self.claims.settle(key, send, again, wait)
            await self._ensure(key, send, again)
        reasons = [await self.claims.failure(key, send.id) for send in sends]
        failed = [reason for reason in reasons if reason is not None]
        return f"what it says was given up for good: {failed[0]}" if failed else None

    async def _predecessor(
        self, key: SessionKey, effect_id: str, turn: Message, lane: Lane
    ) -> Tail:
        """Wait until the send before this turn's is settled."""
        found = await self.claims.find(key, effect_id)
        if found is not None:
            return found
        await self._bus.in_progress(turn)
        for wait_s in self._limits.predecessor_waits_s:
            if lane.has_older(turn):
                raise Overtaken(key.turn)
            if lane.is_stopping:
                break
            await asyncio.sleep(wait_s)
            found = await self.claims.find(key, effect_id)
            if found is not None:
                return found
        if turn.delivered >= self._limits.search_from_delivery and not (
            await self.claims.is_decided(key, effect_id, before=turn.seq)
        ):
            # Its turn is gone or unreadable: nobody can ever say it.
            log.warning(
                "predecessor lost", action="delivery.predecessor_lost", session=str(key),
                effect=effect_id, seq=turn.seq,
            )  # fmt: skip
            return Tail(effect_id)
        raise NotYet(f"{effect_id} is not settled")

    async def _ack(self, turn: Message) -> None:
        crash.point("delivery.turn.before_ack")
        # Without the ack the turn comes again, and everything in it is found done.
        with contextlib.suppress(Unavailable):
            await self._bus.ack(turn)

    async def give_back(self, turn: Message) -> None:
        """Have the turn delivered again soon."""
        await self._nak(turn, self._limits.give_back_delay_s)

    async def leave(self, turn: Message) -> None:
        """Leave the turn to another replica, at the end of this one."""
        await self._nak(turn, self._limits.stop_delay_s)

    async def _nak(self, turn: Message, delay_s: float) -> None:
        with contextlib.suppress(Unavailable):  # then it comes again after ack_wait
            await self._bus.nak(turn, delay_s)

    async def _bury(self, turn: Message, cause: str) -> None:
        """Store a dead letter, then acknowledge."""
        key, now = SessionKey.of_subject(turn.subject), self._clock.now()
        letter = dead_letters.build(decide.SERVICE, STREAM, turn, cause, key, now=now)
        await dead_letters.bury(self._bus, self._counts, letter, turn, key)
        await self._ack(turn)

    async def _refused(self, turn: Message, error: Exception) -> Fate:
        log.error(
            "refused", action="delivery.refused", subject=turn.subject, seq=turn.seq,
            delivered=turn.delivered, error=repr(error),
            exc_info=None if isinstance(error, VigilError) else error,
        )  # fmt: skip
        if turn.delivered >= self._limits.refusals_max:
            try:
                await self._give_up(turn, repr(error))
            except VigilError as again:
                log.error("stuck", action="delivery.stuck", seq=turn.seq, error=str(again))
            else:
                return Fate.FINISHED
        delay_s = self._limits.after_refusal.after(turn.delivered)
        await self._nak(turn, delay_s)
        return Fate.GIVEN_BACK

    async def _give_up(self, turn: Message, cause: str) -> None:
        """Close what the turn could not say, so that later sends don't wait for it."""
        key, record = decide.read_turn(turn.subject, turn.data)
        for send in decide.sends_of(record):
            if await self.claims.find(key, send.id) is None:
                close = Close("failed", cause)
                if await self.claims.close(key, send.id, close, _context_of(turn)):
                    self._counts.count(metrics.SENDS, close.outcome)
        await self._bury(turn, cause)


def _context_of(turn: Message) -> str:
    return trace.passed_on(turn.headers.get(trace.HEADER))
