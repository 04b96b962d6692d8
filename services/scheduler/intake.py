"""What comes in: the turns that ask for timers, and what the broker fired by itself."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus, BusError, Message
from vigil.errors import Unavailable
from vigil.observe.trace import HEADER
from vigil.topology import SCHEDULER_TURNS, SCHEDULER_TURNS_SYSTEM, Consumer
from vigil.worker.effects import InHand, Tasks
from vigil.worker.turns import session_of

from . import decide
from .config import SchedulerLimits
from .decide import Changes, Scheduled
from .promotion import Promoter
from .store import SERVICE, TimerStore

log = structlog.get_logger("vigil.scheduler")


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

    def wanted(self, message: Message) -> list[Changes]:
        """Return what a turn changes about timers. Raises: InvalidInput."""
        return [decide.changes_of(message.subject, message.data, message.header(HEADER))]

    async def carry_out(self, turn: InHand, effect: Changes) -> Tasks:
        """Store and remove what a turn asks for; may be repeated."""
        for scheduled in await self._not_overtaken(turn, effect.scheduled):
            crash.point("scheduler.schedule.before")
            await self._store.schedule(scheduled.entry, scheduled.effect_id)
            crash.point("scheduler.schedule.after")
            self._promoter.add(scheduled.entry)
        # All at once: a person may void hundreds.
        await asyncio.gather(*map(self._promoter.cancel, effect.cancelled))
        return []

    async def _not_overtaken(
        self, turn: InHand, scheduled: tuple[Scheduled, ...]
    ) -> list[Scheduled]:
        """Return those that no later turn changed, if this one comes again: who died had it in
        hand, while the next one carried out the later turn."""
        if not scheduled or turn.message.delivered == 1:
            return list(scheduled)
        later = await self._store.changes_after(turn.key, turn.message.seq)
        overtaken = [s for s in scheduled if decide.is_overtaken_by(s.entry.subject, later)]
        for one in overtaken:
            log.info("overtaken", action="scheduler.overtaken", timer=one.entry.subject)
        return [one for one in scheduled if one not in overtaken]

    async def give_up(self, turn: InHand, effect: Changes, cause: str) -> None:
        """Nobody waits: a timer that never fires is what the dead letter is about."""


async def catch_up(bus: Bus, limits: SchedulerLimits) -> None:
    """Wait until every turn that is stored now was carried out, within limits.

    Timers of turns may be due before those that are known already. Some turns may be in the hands
    of one who was killed, and come again only after their ack wait: that nothing more comes tells
    nothing, so it's asked up to where all are acknowledged.
    """
    layout = await bus.layout()
    readers = [
        each for one in (SCHEDULER_TURNS, SCHEDULER_TURNS_SYSTEM) for each in layout.each(one)
    ]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.catch_up_max_s):
            await asyncio.gather(*(_through(bus, reader, limits) for reader in readers))
            return
    log.warning("not caught up", action="scheduler.behind", after_s=limits.catch_up_max_s)


async def _through(bus: Bus, reader: Consumer, limits: SchedulerLimits) -> None:
    """Wait until a consumer's turns of up to now are acknowledged."""
    last: int | None = None
    while True:
        try:
            if last is None:
                last = await bus.newest(reader.stream, reader.filters)
            if await _is_through(bus, reader, last):
                return
        except (Unavailable, BusError) as error:  # its leader is elected; then the term ends or not
            log.info("can't tell", action="scheduler.catch_up", error=str(error))
        await asyncio.sleep(limits.catch_up_again_s)


async def _is_through(bus: Bus, reader: Consumer, last: int) -> bool:
    info = await bus.api(f"CONSUMER.INFO.{reader.stream}.{reader.name}", {})
    is_idle: bool = info["num_pending"] == info["num_ack_pending"] == 0
    return is_idle or int(info["ack_floor"]["stream_seq"]) >= last
