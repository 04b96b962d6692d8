"""The worker: takes messages of durable consumers and sees that each is done, or comes again.

One for each thing that a service carries out (:class:`.effects.Effects`): pulling, skipping what
is not for the service, lanes, holding, acknowledging, giving back, dead letters, trying those
again, people who are being erased, and a stop with grace are here and nowhere else. What a failure
leads to is one table (:mod:`.outcomes`).

A message is acknowledged only when all that it asks for is done, so a replica that is killed at
any point loses nothing: it comes to another one, which finds out how far it got.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Generic, TypeVar

import structlog

from .. import crash
from ..bus.bus import Message
from ..errors import InvalidInput, Unavailable, VigilError
from ..layout import name_of
from ..observe import trace
from ..runtime import Context
from ..subjects import SessionKey
from ..topology import Consumer
from . import dead_letters, turns
from .consumer_loop import ConsumerLoop, consuming
from .effects import Effects, InHand, Tasks, WorkLimits
from .groups import begin
from .hold import Hold
from .lanes import Lanes
from .outcomes import Terminal, TryLater, outcome_of
from .requeue import DONE, GONE, RequeueQuestion, RequeueReply

E = TypeVar("E")

log = structlog.get_logger("vigil.worker")


class _Carried:
    """How far a message was carried out."""

    __slots__ = ("beside", "later", "useless")

    def __init__(self) -> None:
        self.beside: Tasks = []
        self.useless: Exception | None = None
        self.later: TryLater | None = None


async def _nothing() -> None:
    """With nothing beside the lanes there is nothing to end."""


class Worker(Generic[E]):
    """Carries out one service's part of what is stored.

    Args:
        is_gone: whether a session is being deleted, or its person erased: nothing of it is
            carried out any more.
        end_beside: ends what goes on beside the lanes, once no lane begins anything.
    """

    def __init__(
        self,
        context: Context,
        effects: Effects[E],
        limits: WorkLimits,
        is_gone: Callable[[SessionKey], bool],
        *,
        end_beside: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._counts = context.metrics
        self._effects = effects
        self._limits = limits
        self._is_gone = is_gone
        self._end_beside = end_beside
        self._hold = Hold(context.bus, effects.service, limits.hold_every_s)
        self._refusals: Counter[tuple[str, int]] = Counter()
        self._finishing: set[asyncio.Task[None]] = set()
        self._streams: frozenset[str] = frozenset()
        self._group: asyncio.TaskGroup
        self._lanes: Lanes[Message]

    @contextlib.asynccontextmanager
    async def consuming(self, *consumers: Consumer) -> AsyncIterator[list[ConsumerLoop]]:
        """Open what :meth:`run` takes from. Raises: Unavailable, the broker is away."""
        self._streams = frozenset(consumer.stream for consumer in consumers)
        async with consuming(self._bus, self._effects.service, *consumers) as loops:
            yield loops

    async def run(self, loops: Collection[ConsumerLoop]) -> None:
        """Take messages until cancelled; then finish or give back what is in hand.

        Raises:
            ExceptionGroup: a bug, which ends the service instead of hiding.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._lanes = Lanes(
                self._group, self._handle, slots=self._limits.slots, abreast=self._limits.abreast
            )
            holding = self._group.create_task(self._hold.run(), name=f"{self._effects.name}-hold")
            try:
                async with asyncio.TaskGroup() as pulling:
                    for loop in loops:
                        pulling.create_task(loop.run(self._take), name=f"{self._effects.name}s")
            finally:
                await self._stop()
                holding.cancel()

    async def _stop(self) -> None:
        await self._lanes.stop(grace_s=self._limits.stop_grace_s)
        await self._end_beside()
        if self._finishing:
            await asyncio.wait(list(self._finishing))
        for message in self._hold.all():
            await self._give_back(message, self._limits.stop_delay_s)

    # ------------------------------------------------------------ taking

    async def _take(self, message: Message) -> None:
        effects, limits = self._effects, self._limits
        older = message.header(turns.LETTERS_HEADER)
        if effects.letter is not None and not turns.may_ask(
            message.subject, older, message.data, effects.letter, effects.tags
        ):
            await self._bus.ack(message)
            return
        lane = effects.lane_of(message)
        if limits.lane_max is not None and self._lanes.size_of(lane) >= limits.lane_max:
            await self._give_back(message, limits.overflow_delay_s)
            return
        self._hold.add(message)
        self._lanes.put(lane, message.seq, message)
        await self._lanes.below(limits.in_hand_max)

    # ------------------------------------------------------------ one message

    async def _handle(self, message: Message) -> None:
        """Do what a message asks, and acknowledge it or have it tried again.

        Never raises but when cancelled: then it comes to another replica.
        """
        crash.point(f"{self._effects.name}.received")
        trace.current.set(trace.passed_on(message.header(trace.HEADER)))
        key = _session_of(message.subject)
        if key is None:
            log.error(
                "names no session",
                action=f"{self._effects.service}.unusable",
                subject=message.subject,
                seq=message.seq,
            )
            await self._done(message)
            return
        lane = self._effects.lane_of(message)
        turn = InHand(key, message, self._lanes, lane)
        try:
            carried = await self._carry_out(turn)
            if carried.useless is not None:
                await self._bury(turn, str(carried.useless))
            if carried.later is not None:
                raise carried.later
        except Exception as error:
            may_go_on = await self._failed(turn, error)
        else:
            may_go_on = True
            await self._finish_beside(turn, carried.beside)
        if not may_go_on and self._limits.abreast == 1:
            for newer in self._lanes.drain(lane):
                await self._give_back(newer, self._limits.give_back_delay_s)

    async def _carry_out(self, turn: InHand) -> _Carried:
        """Carry out each effect, as long as it isn't being deleted.

        Raises: what keeps it from being carried out, as in :mod:`.outcomes`.
        """
        carried = _Carried()
        if self._is_gone(turn.key):
            return carried
        for effect in self._effects.wanted(turn.message):
            if self._is_gone(turn.key):
                break
            try:
                carried.beside += await self._effects.carry_out(turn, effect)
            except (InvalidInput, Terminal) as error:
                carried.useless = carried.useless or error
            except TryLater as error:
                carried.later = error
                break
        return carried

    async def _finish_beside(self, turn: InHand, beside: Tasks) -> None:
        """Acknowledge the message now, or once what goes on beside its lane has ended."""
        if not beside:
            await self._done(turn.message)
            return
        task = begin(self._group, self._finish(turn, beside))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _finish(self, turn: InHand, beside: Tasks) -> None:
        await asyncio.wait(beside)
        errors = _errors_of(beside)
        if errors:
            await self._failed(turn, errors[0])
        else:
            await self._done(turn.message)

    async def _done(self, message: Message) -> None:
        crash.point(f"{self._effects.name}.before_ack")
        self._hold.drop(message)
        self._refusals.pop((message.subject, message.seq), None)
        with contextlib.suppress(Unavailable):  # then it comes again, and is found done
            await self._bus.ack(message)

    # ------------------------------------------------------------ not now, or never

    async def _failed(self, turn: InHand, error: Exception) -> bool:
        """Do what the kind of the failure asks for; return whether its lane may go on."""
        match outcome_of(error):
            case "overtaken":
                self._lanes.put(turn.lane, turn.message.seq, turn.message)
            case "later" if isinstance(error, TryLater):
                await self._give_back(turn.message, error.delay_s, error)
            case "buried":
                await self._bury(turn, str(error))
                await self._done(turn.message)
            case "given_back":
                await self._give_back(turn.message, self._limits.give_back_delay_s, error)
                return False
            case _:
                return await self._refused(turn, error)
        return True

    async def _give_back(
        self, message: Message, delay_s: float, error: Exception | None = None
    ) -> None:
        """Have a message delivered again after so many seconds."""
        if error is not None and str(error):
            log.info(
                "given back",
                action=f"{self._effects.service}.give_back",
                subject=message.subject,
                seq=message.seq,
                delivered=message.delivered,
                error=str(error),
            )
        self._hold.drop(message)
        with contextlib.suppress(Unavailable):  # then it comes again after the ack wait
            await self._bus.nak(message, delay_s)

    async def _refused(self, turn: InHand, error: Exception) -> bool:
        """Try again some times what the broker refuses, or a bug of ours; then give it up.

        Neither may hold up the session or be tried for ever.
        """
        message = turn.message
        self._refusals[message.subject, message.seq] += 1
        times = self._refusals[message.subject, message.seq]
        log.error(
            "refused",
            action=f"{self._effects.service}.refused",
            subject=message.subject,
            seq=message.seq,
            times=times,
            error=repr(error),
            exc_info=None if isinstance(error, VigilError) else error,
        )
        is_last = self._limits.refusals_max is not None and times >= self._limits.refusals_max
        if is_last and await self._is_given_up(turn, repr(error)):
            return True
        await self._give_back(message, self._limits.after_refusal.after(times))
        return False

    async def _is_given_up(self, turn: InHand, cause: str) -> bool:
        try:
            for effect in self._effects.wanted(turn.message):
                await self._effects.give_up(turn, effect, cause)
        except VigilError as error:
            log.error(
                "can't be given up",
                action=f"{self._effects.service}.stuck",
                seq=turn.message.seq,
                error=str(error),
            )
            return False
        await self._bury(turn, cause)
        await self._done(turn.message)
        return True

    async def _bury(self, turn: InHand, cause: str) -> None:
        """Store a dead letter, however long that takes."""
        message, service = turn.message, self._effects.service
        letter = dead_letters.build(service, message, cause, turn.key, now=self._clock.now())
        await dead_letters.bury(self._bus, self._counts, letter, message, turn.key)

    # ------------------------------------------------------------ what died, once more

    async def again(self, question: RequeueQuestion) -> RequeueReply:
        """Carry out once more what became a dead letter, because a person asked.

        Raises: as in :mod:`.outcomes`.
        """
        stored = await self.stored(question)
        key = _session_of(question.subject)
        if stored is None or key is None:
            return GONE
        carried = await self._carry_out(InHand(key, stored, None))
        if carried.beside:
            await asyncio.wait(carried.beside)
        for error in (*_errors_of(carried.beside), carried.useless, carried.later):
            if error is not None:
                raise error
        return DONE

    async def stored(self, question: RequeueQuestion) -> Message | None:
        """Return the message that died, as one that comes again; None: it's gone."""
        stream = (await self._bus.layout()).stream_of(question.subject)
        if question.stream != stream or name_of(stream) not in self._streams:
            return None
        found = await self._bus.get(stream, question.seq)
        if found is None or found.subject != question.subject:
            return None
        return Message(
            found.subject, found.data, found.headers, found.seq, delivered=2, stream=stream
        )


class Cut(Unavailable):
    """Something beside the lanes was cut off by the end of this replica."""


def _session_of(subject: str) -> SessionKey | None:
    """Return the session of a subject with every part checked; None: it names none."""
    try:
        key = SessionKey.of_subject(subject)
        return SessionKey.of(key.user, key.agent, key.thread)
    except (InvalidInput, ValueError):
        return None


def _errors_of(ended: Collection[asyncio.Task[None]]) -> list[Exception]:
    """Return what kept tasks from their end, faults of ours first."""
    errors: list[Exception] = []
    for task in ended:
        error = Cut("this replica stops") if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            errors.append(error)
    return sorted(errors, key=lambda error: isinstance(error, Unavailable))
