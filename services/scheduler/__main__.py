"""The scheduler: time. It carries out schedule_timer and cancel_timer, and thinks nothing.

One replica is active, by a lease; the others stand by and take over within its ttl and a
second. What it fires is a hint: a timer counts only if it is open in its session's state.
"""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from vigil import runtime
from vigil.background.end import end_tasks
from vigil.bus.lease import RELEASE_TIMEOUT_S, Lease, Leases
from vigil.errors import LeaseLost, VigilError
from vigil.observe import metrics
from vigil.observe.metrics import Metrics
from vigil.runtime import Context
from vigil.settings.switches import Switches

from .config import SchedulerLimits
from .promotion import PauseSwitch
from .term import LEASE, Term
from .warmth import WarmGate

log = structlog.get_logger("vigil.scheduler")


async def serve(context: Context, limits: SchedulerLimits | None = None) -> None:
    """Stand by, and be the active scheduler whenever the lease is free."""
    limits = limits or SchedulerLimits()
    leases = Leases(context.bus, context.instance, replicas=context.settings.config.nats.replicas)
    switches = await Switches.watch(context.bus)
    pause = PauseSwitch(switches, context.settings.config)
    must_clear = context.settings.config.autonomy.restart_policy == "clear"
    stand_by(context.metrics)
    gate = WarmGate(context)
    warming = context.beside(gate.run(), "scheduler-warm")
    context.ready.set()
    try:
        while True:
            lease = await _acquire(leases, limits)
            term = Term(context, pause, gate, limits, must_clear=must_clear)
            await _be_active(term, lease, context.metrics)
            must_clear = term.must_clear
    finally:
        await end_tasks(warming)
        await switches.close()


async def _acquire(leases: Leases, limits: SchedulerLimits) -> Lease:
    """Stand by until the lease is ours."""
    while True:
        try:
            lease = await leases.acquire(LEASE)
        except VigilError as error:
            log.info("no lease", action="scheduler.lease", error=str(error))
            await asyncio.sleep(limits.acquire_again_s)
        else:
            if lease is not None:
                return lease
            await asyncio.sleep(limits.standby_poll_s)


async def _be_active(term: Term, lease: Lease, counts: Metrics) -> None:
    """Run one term; what the broker refused ends it, a fault of ours ends the process."""
    counts.watch(metrics.SCHEDULER_ACTIVE, lambda: 1)
    try:
        await term.run(lease)
    except* LeaseLost:
        log.warning("no longer active", action="scheduler.lease_lost")
    except* VigilError as errors:
        log.warning("no longer active", action="scheduler.term", errors=repr(errors.exceptions))
    finally:
        stand_by(counts)
        with contextlib.suppress(VigilError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await lease.release()
    runtime.heed_cancellation()


def stand_by(counts: Metrics) -> None:
    """Tell that another replica fires."""
    counts.watch(metrics.SCHEDULER_ACTIVE, lambda: 0)
    counts.watch(metrics.TIMERS, lambda: 0)


if __name__ == "__main__":
    runtime.main("scheduler")
