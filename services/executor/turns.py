"""What the executor does with turns: what is quick in its order, calls beside.

A turn stays in hand while its calls run, so that a crash brings it to another replica; the next
turns of its session don't wait for that.
"""

from __future__ import annotations

import contextlib
from typing import Final

from vigil.bus.bus import Message
from vigil.contracts import CallTool
from vigil.errors import VigilError
from vigil.worker.effects import InHand, Tasks
from vigil.worker.outcomes import TryLater
from vigil.worker.turns import session_of

from . import work
from .calls import CallsInHand
from .config import ExecutorLimits
from .effects import Carrying
from .work import Quick

Effect = Quick | tuple[CallTool, ...]
"""The calls of a turn are begun together: in part, and given back, it would come again and find
those parts in its way."""

NO_ROOM: Final = "no room for more calls"


class ExecutorTurns:
    """Carries out what turns ask of the executor (:class:`vigil.worker.effects.Effects`)."""

    service = work.SERVICE
    name = "executor.turn"
    letter = work.LETTER
    tags = work.TAGS

    def __init__(self, calls: CallsInHand, carrying: Carrying, limits: ExecutorLimits) -> None:
        self._calls = calls
        self._carrying = carrying
        self._limits = limits
        self._carried: dict[tuple[str, int], None] = {}
        """Turns of which all that is quick was done here: if one comes again because a call of it
        is in other hands, it isn't told again and again how things stood then."""

    def lane_of(self, message: Message) -> str:
        return session_of(message.subject)

    def wanted(self, message: Message) -> list[Effect]:
        """Return what a turn asks of the executor, in order. Raises: InvalidInput."""
        _, record = work.read_turn(message.subject, message.data)
        calls = tuple(work.calls_of(record))
        quick: list[Effect] = [*work.quick_of(record)]
        return [*quick, calls] if calls else quick

    async def carry_out(self, turn: InHand, effect: Effect) -> Tasks:
        """Do what is quick, or begin the calls.

        Raises:
            InvalidInput: it asks for what can't be.
            Unavailable, TryLater: not now.
            BusError: the broker refused.
        """
        if isinstance(effect, tuple):
            return self._begin(turn, effect)
        if turn.is_requeued or _place_of(turn) not in self._carried:
            await self._carrying.carry_out(turn.key, effect, turn.message.seq)
        return []

    def _begin(self, turn: InHand, calls: tuple[CallTool, ...]) -> Tasks:
        self._remember(turn)
        if turn.is_stopping or not self._calls.has_room(turn.key.user):
            raise TryLater(self._limits.turns.give_back_delay_s, NO_ROOM)
        return [self._calls.begin(turn.key, call) for call in calls]

    def _remember(self, turn: InHand) -> None:
        self._carried[_place_of(turn)] = None
        while len(self._carried) > self._limits.carried_max:
            del self._carried[next(iter(self._carried))]

    async def give_up(self, turn: InHand, effect: Effect, cause: str) -> None:
        """Answer calls that no try could settle."""
        for call in effect if isinstance(effect, tuple) else ():
            with contextlib.suppress(VigilError):  # its deadline ends it, then
                await self._calls.give_up(turn.key, call)


def _place_of(turn: InHand) -> tuple[str, int]:
    return turn.message.subject, turn.message.seq
