"""Handling turns: what is quick in its order, calls beside, and the acknowledgement at the end.

A turn stays in hand while its calls run, so that a crash brings it to another replica; the next
turns of its session don't wait for that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection

import structlog

from vigil import crash
from vigil.bus.bus import Message
from vigil.contracts import Turn
from vigil.errors import InvalidInput, Unavailable, VigilError
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.worker.groups import begin

from . import work
from .calls import Calls
from .config import Limits
from .effects import Carrying
from .heartbeat import Holding
from .letters import Letters

log = structlog.get_logger("vigil.executor")

Tasks = list[asyncio.Task[None]]


class Handling:
    """What a replica does with each turn.

    Args:
        group: what waits for the calls; a bug in that ends the service instead of hiding.
    """

    def __init__(
        self,
        context: Context,
        calls: Calls,
        carrying: Carrying,
        holding: Holding,
        limits: Limits,
        is_erasing: Callable[[str], bool],
        group: asyncio.TaskGroup,
    ) -> None:
        self._bus = context.bus
        self._calls = calls
        self._carrying = carrying
        self._letters = Letters(context, limits)
        self._holding = holding
        self._limits = limits
        self._is_erasing = is_erasing
        self._group = group
        self._finishing: set[asyncio.Task[None]] = set()
        self._refusals: Counter[tuple[str, int]] = Counter()
        self._carried: dict[tuple[str, int], None] = {}
        """Turns of which all that is quick was done here: if one comes again because a call of it
        is in other hands, it isn't told again and again how things stood then."""

    async def handle(self, turn: Message) -> bool:
        """Do what is quick, and see to it that the rest is done; return whether the next turn of
        the session may follow.

        Never raises but when cancelled: then the turn comes to another replica.
        """
        crash.point("executor.turn.received")
        trace.current.set(trace.passed_on(turn.headers.get(trace.HEADER)))
        try:
            key, record = await self._carry_out_once(turn)
        except Exception as error:
            return await self._failed(turn, error)
        try:
            begun = self._begin_calls(key, record)
        except Unavailable as error:
            await self._give_back(turn, error)
            return True
        if not begun:
            await self._done(turn)
            return True
        task = begin(self._group, self._finish(turn, begun))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)
        return True

    async def again(self, turn: Message) -> None:
        """Do everything that a turn asks, because a person wants it; may be repeated.

        Raises:
            InvalidInput: it can't be read, or asks for what can't be.
            Unavailable: try again later.
            BusError: the broker refused.
        """
        key, record, unusable = await self._carry_out(turn)
        begun = self._begin_calls(key, record)
        if begun:
            await asyncio.wait(begun)
        for error in _errors_of(begun):
            raise error
        if unusable is not None:
            raise unusable

    async def finished(self) -> None:
        """Wait until the turns whose calls have ended are acknowledged or given back."""
        if self._finishing:
            await asyncio.wait(list(self._finishing))

    # ------------------------------------------------------------ one turn

    async def _carry_out_once(self, turn: Message) -> tuple[SessionKey, Turn]:
        """Carry out what is quick in a turn; what of it can't be is a dead letter.

        Raises: as :meth:`_carry_out`.
        """
        if (turn.subject, turn.seq) in self._carried:
            return work.read_turn(turn.subject, turn.data)
        key, record, unusable = await self._carry_out(turn)
        if unusable is not None:
            await self._letters.bury(key, turn, str(unusable))
        self._remember(turn)
        return key, record

    async def _carry_out(self, turn: Message) -> tuple[SessionKey, Turn, InvalidInput | None]:
        """Carry out what is quick in a turn; return what of it asks for what can't be, too.

        Raises:
            InvalidInput: it can't be read.
            Unavailable: try again later.
            BusError: the broker refused.
        """
        key, record = work.read_turn(turn.subject, turn.data)
        unusable: InvalidInput | None = None
        for effect in work.quick_of(record):
            if self._is_erasing(key.user):
                break
            try:
                await self._carrying.carry_out(key, effect, turn.seq)
            except InvalidInput as error:
                unusable = unusable or error
        return key, record, unusable

    def _remember(self, turn: Message) -> None:
        self._carried[turn.subject, turn.seq] = None
        while len(self._carried) > self._limits.carried_max:
            del self._carried[next(iter(self._carried))]

    def _begin_calls(self, key: SessionKey, record: Turn) -> Tasks:
        """Begin the calls of a turn. Raises: Unavailable, there is no room for them."""
        found = work.calls_of(record)
        if not found or self._is_erasing(key.user):
            return []
        if not self._calls.has_room(key.user):
            raise Unavailable("no room for more calls")
        return [self._calls.begin(key, call) for call in found]

    async def _finish(self, turn: Message, begun: Tasks) -> None:
        """Acknowledge a turn when its calls are settled, or have it tried again."""
        await asyncio.wait(begun)
        errors = _errors_of(begun)
        if errors:
            await self._failed(turn, errors[0])
        else:
            await self._done(turn)

    async def _done(self, turn: Message) -> None:
        crash.point("executor.turn.before_ack")
        self._holding.drop(turn)
        self._refusals.pop((turn.subject, turn.seq), None)
        with contextlib.suppress(Unavailable):  # then it comes again, and is found done
            await self._bus.ack(turn)

    # ------------------------------------------------------------ not now, or never

    async def give_back(self, turn: Message) -> None:
        """Have a turn delivered again soon."""
        self._holding.drop(turn)
        with contextlib.suppress(Unavailable):  # then it comes again after ack_wait
            await self._bus.nak(turn, self._limits.give_back_delay_s)

    async def _give_back(self, turn: Message, error: Exception) -> None:
        log.info(
            "turn given back", action="executor.give_back", subject=turn.subject, seq=turn.seq,
            delivered=turn.delivered, error=str(error),
        )  # fmt: skip
        await self.give_back(turn)

    async def _failed(self, turn: Message, error: Exception) -> bool:
        """Bury a turn, or have it tried again; return whether it's done."""
        if isinstance(error, InvalidInput):
            await self._letters.bury(SessionKey.of_subject(turn.subject), turn, str(error))
            await self._done(turn)
            return True
        if isinstance(error, Unavailable):
            await self._give_back(turn, error)
            return False
        return await self._refused(turn, error)

    async def _refused(self, turn: Message, error: Exception) -> bool:
        """Try again some times what the broker refuses, or a bug of ours; then give it up.

        Neither may hold up the session or be tried for ever. The calls are answered with an error,
        and a person finds the dead letter.
        """
        place = (turn.subject, turn.seq)
        self._refusals[place] += 1
        log.error(
            "refused", action="executor.refused", subject=turn.subject, seq=turn.seq,
            times=self._refusals[place], error=repr(error),
            exc_info=None if isinstance(error, VigilError) else error,
        )  # fmt: skip
        if self._refusals[place] < self._limits.refusals_max:
            await self.give_back(turn)
            return False
        key, record = work.read_turn(turn.subject, turn.data)
        for call in work.calls_of(record):
            with contextlib.suppress(VigilError):  # its deadline ends it, then
                await self._calls.give_up(key, call)
        await self._letters.bury(key, turn, repr(error))
        await self._done(turn)
        return True


class Cut(Unavailable):
    """A call was cut off by the end of this replica."""


def _errors_of(ended: Collection[asyncio.Task[None]]) -> list[Exception]:
    """Return what kept calls from being settled, faults of ours first."""
    errors: list[Exception] = []
    for task in ended:
        error = Cut("this replica stops") if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            errors.append(error)
    return sorted(errors, key=lambda error: isinstance(error, Unavailable))
