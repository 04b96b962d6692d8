"""What comes in: the turns that ask for timers, and what the broker fired by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final

from vigil import crash
from vigil.bus.bus import Message
from vigil.observe import trace
from vigil.worker.consumer_loop import ConsumerLoop
from vigil.worker.effects import InHand, Tasks
from vigil.worker.turns import session_of
from vigil.worker.worker import Worker

from . import decide
from .config import SchedulerLimits
from .decide import Cancelled, Scheduled
from .promotion import Promoter
from .store import SERVICE, TimerStore

Effect = Scheduled | tuple[Cancelled, ...]
"""The timers that a turn voids are removed all at once: a person may void hundreds."""


class TimerTurns:
    """Carries out the timer effects of turns (:class:`vigil.worker.effects.Effects`)."""

    service = SERVICE
    name = "scheduler.turn"
    letter: Final = "t"
    tags: Final = (b'"type":"schedule_timer"', b'"type":"cancel_timer"')

    def __init__(self, store: TimerStore, promoter: Promoter) -> None:
        self._store = store
        self._promoter = promoter

    def lane_of(self, message: Message) -> str:
        return session_of(message.subject)

    def wanted(self, message: Message) -> list[Effect]:
        """Return what a turn changes about timers. Raises: InvalidInput."""
        changes = decide.changes_of(
            message.subject, message.data, message.headers.get(trace.HEADER)
        )
        scheduled: list[Effect] = [*changes.scheduled]
        return [*scheduled, changes.cancelled] if changes.cancelled else scheduled

    async def carry_out(self, turn: InHand, effect: Effect) -> Tasks:
        """Store or remove what a turn asks for; may be repeated."""
        if isinstance(effect, tuple):
            await asyncio.gather(*(self._promoter.cancel(one) for one in effect))
        else:
            crash.point("scheduler.schedule.before")
            await self._store.schedule(effect.entry, effect.effect_id)
            crash.point("scheduler.schedule.after")
            self._promoter.add(effect.entry)
        return []

    async def give_up(self, turn: InHand, effect: Effect, cause: str) -> None:
        """Nobody waits: a timer that never fires is what the dead letter is about."""


async def catch_up(
    worker: Worker[Effect], loops: Collection[ConsumerLoop], limits: SchedulerLimits
) -> None:
    """Wait until the turns of an outage are carried out, within limits.

    Their timers may be due before those that were stored already. In a cluster, that no turn
    comes tells nothing before somebody has answered.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.catch_up_max_s):
            await asyncio.gather(*(_read(loop, limits.catch_up_quiet_s) for loop in loops))
            await worker.settled()


async def _read(loop: ConsumerLoop, quiet_s: float) -> None:
    """Wait until all is taken that waited, or nothing came for so long."""
    while not loop.is_caught_up.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(quiet_s):
                await loop.is_caught_up.wait()
        if loop.is_idle:
            return
