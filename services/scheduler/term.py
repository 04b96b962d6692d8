"""One term of being the active scheduler: from the lease to its loss.

Nothing is carried over from a term to the next: what is pending is read again from TIMERS.
Two terms at once (a process that slept through its lease) are harmless, because the broker
drops the second of two equal events and the session's fold ignores what isn't open.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.bus.lease import RENEW_S, RENEW_TIMEOUT_S, Lease
from vigil.clock import until_next
from vigil.errors import InvalidInput, LeaseLost, Unavailable
from vigil.observe import metrics, trace
from vigil.runtime import Context
from vigil.settings import switches
from vigil.subjects import DUE_ALL, TIMERS_ALL
from vigil.topology import DUE, SCHEDULER_TURNS, SCHEDULER_TURNS_SYSTEM
from vigil.worker.consumer_loop import ConsumerLoop, consuming
from vigil.worker.requeue import answering
from vigil.worker.worker import Worker

from . import decide
from .bulletins.keeper import ForgetfulKeeper
from .config import SchedulerLimits
from .decide import Changes
from .deletions import ThreadDeletions
from .goals import GoalDeadlines
from .intake import TimerTurns, catch_up
from .minds import MindKeeper
from .notifications.hooks import HookNotifier
from .promotion import PauseSwitch, Promoter
from .rearm import make_again
from .store import SERVICE, STREAM, TimerStore
from .tasks import Pickup
from .timetable.clock import TimetableClock
from .timetable.row_keeper import RowKeeper
from .upkeep import Upkeep
from .warmth import WarmGate

log = structlog.get_logger("vigil.scheduler")

LEASE: Final = "scheduler"


class Term:
    """What the active scheduler does, until it is cancelled or loses its lease."""

    def __init__(
        self,
        context: Context,
        pause: PauseSwitch,
        gate: WarmGate,
        limits: SchedulerLimits,
        *,
        must_clear: bool,
    ) -> None:
        self._context = context
        self._bus = context.bus
        self._config = context.settings.config
        self._pause = pause
        self._gate = gate
        self._limits = limits
        self._store = TimerStore(
            context.bus, context.clock, limits, context.tracer, context.metrics
        )
        self.must_clear = must_clear
        """Whether follow-ups of before the start are still to be voided."""

    async def run(self, lease: Lease) -> None:
        """Be active. Raises: ExceptionGroup, of LeaseLost or of what went wrong."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew(lease))
            group.create_task(self._upkeep().run())
            group.create_task(ThreadDeletions(self._context, self._pause).run())
            group.create_task(Pickup(self._context, self._pause).run())
            group.create_task(GoalDeadlines(self._context, self._pause).run())
            group.create_task(HookNotifier(self._context, self._pause).run())
            group.create_task(TimetableClock(self._context, self._pause, self._gate).run())
            group.create_task(MindKeeper(self._context, self._pause).run())
            group.create_task(RowKeeper(self._context, self._pause).run())
            group.create_task(ForgetfulKeeper(self._context, self._pause, self._gate).run())
            await switches.mark_caps(self._bus, self._config.caps_digest, self._context.clock.now())
            promoter = self._promoter(group)
            await self._collect(promoter)
            self._context.metrics.watch(metrics.TIMERS, lambda: len(promoter.agenda))
            await make_again(self._bus, self._store, promoter)
            worker = self._worker(promoter)
            async with (
                worker.consuming(SCHEDULER_TURNS, SCHEDULER_TURNS_SYSTEM) as turns_in,
                consuming(self._bus, SERVICE, DUE) as due_in,
            ):
                group.create_task(worker.run(turns_in))
                for loop in due_in:
                    group.create_task(loop.run(promoter.receive))
                await self._serve(promoter, worker, turns_in, group)

    async def _serve(
        self,
        promoter: Promoter,
        worker: Worker[Changes],
        turns_in: list[ConsumerLoop],
        group: asyncio.TaskGroup,
    ) -> None:
        """Catch up with the turns of an outage; then fire what is due."""
        await catch_up(self._bus, self._limits)
        if self._bus.is_cluster:
            for loop in turns_in:
                loop.interrupted.clear()
                group.create_task(_until_interrupted(loop))
        await self._clear(promoter)
        for _ in range(self._limits.removals_in_flight):
            group.create_task(promoter.clean())
        async with answering(self._bus, SERVICE, worker.again):
            await promoter.fire()

    def _worker(self, promoter: Promoter) -> Worker[Changes]:
        effects = TimerTurns(self._store, promoter)
        return Worker(self._context, effects, self._limits.turns, self._pause.is_gone)

    def _upkeep(self) -> Upkeep:
        memory, first_s = self._config.memory, self._limits.upkeep_first_s
        return Upkeep(self._bus, self._context.clock, memory, first_s=first_s)

    def _promoter(self, group: asyncio.TaskGroup) -> Promoter:
        return Promoter(
            self._bus, self._store, self._context.clock, self._pause, self._limits, group
        )

    async def _renew(self, lease: Lease) -> None:
        """Keep the lease; after a reconnect ask at once, for the broker forgot all of them."""
        reconnected = asyncio.Event()
        self._bus.on_restart(f"lease-{LEASE}", reconnected.set)
        loop = asyncio.get_running_loop()
        try:
            while True:
                reconnected.clear()
                try:
                    async with asyncio.timeout(until_next(RENEW_S, loop.time())):
                        await reconnected.wait()
                except TimeoutError:
                    pass
                try:
                    async with asyncio.timeout(RENEW_TIMEOUT_S):
                        await lease.renew()
                except TimeoutError as error:
                    raise LeaseLost(LEASE) from error
        finally:
            self._bus.on_restart(f"lease-{LEASE}", None)

    async def _collect(self, promoter: Promoter) -> None:
        """Put on the agenda what is pending, before anything fires, so that order holds."""
        for message in await self._bus.read(STREAM, [TIMERS_ALL, DUE_ALL]):
            try:
                entry = decide.entry_of(message.subject, message.data, message.header(trace.HEADER))
            except InvalidInput as error:
                await promoter.reject(message, error)
            else:
                promoter.add(entry)
        log.info("active", action="scheduler.active", pending=len(promoter.agenda))

    async def _clear(self, promoter: Promoter) -> None:
        """Ask the sessions to void their follow-ups (``restart_policy = "clear"``)."""
        if not self.must_clear:
            return
        for key in promoter.agenda.sessions_with_follow_ups():
            control_id = f"clear-{self._context.new_id()}"
            await self._store.control(decide.cleared(key, control_id, self._context.clock.now()))
        self.must_clear = False


async def _until_interrupted(turns_in: ConsumerLoop) -> None:
    """End the term when turns could not be read: the next one catches up before it fires.

    Where the broker stands alone, nothing could be fired meanwhile. In a cluster each consumer
    and each stream has a leader of its own, and all of them come back one by one.
    """
    await turns_in.interrupted.wait()
    raise Unavailable("turns could not be read for a while")
