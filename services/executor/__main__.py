"""The executor: what agents do (SPEC X-1).

It carries out what turns ask of the world beyond speech, time and memory: tools are run, sessions
are started, told and ended, the board is kept. Nothing is decided here, and no model is called:
whether a call may be made was decided by the core before it became an effect.

Any number of replicas share the work. What a replica promises to others is in two places: its lease
says that it lives, and the claim of a call says whose it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec
import structlog

from services.executor.presence import Presence
from vigil import runtime, topology
from vigil.bus.lease import Leases
from vigil.calendars.mirror import FOLDER
from vigil.calendars.section import CalendarSection
from vigil.observe import metrics
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.subjects import EXECUTOR_CANCEL
from vigil.worker import requeue
from vigil.worker.worker import Worker
from vigil.zones.database import zone_named

from . import sources, work
from .board.facts import FactStore
from .builtin import Builtin
from .calendars.book import CalendarBook, zone_of
from .calls import CallsInHand
from .config import ExecutorLimits
from .effects import Carrying
from .mailboxes.holder import MailboxHolder
from .probes.watcher import Watcher
from .tools.registry import Registry
from .turns import ExecutorTurns
from .workspace import erasure

if TYPE_CHECKING:
    from .calendars.keeper import CalendarKeeper

log = structlog.get_logger("vigil.executor")


async def serve(context: Context, limits: ExecutorLimits | None = None) -> None:
    """Carry out turns until cancelled; then finish or give back what is in hand.

    Raises:
        ConfigError: the tools can't work as configured.
    """
    limits = limits or ExecutorLimits()
    replicas = context.settings.config.nats.replicas
    presence = Presence(
        Leases(context.bus, context.instance, replicas=replicas),
        work.SERVICE,
        context.instance,
        context.clock,
    )
    registry = Registry(context.bus, context.clock)
    switches = await Switches.watch(context.bus)
    try:
        async with (
            asyncio.TaskGroup() as group,
            sources.start(context, registry) as own,
        ):
            publishing = group.create_task(
                registry.run(sources.expected(context.settings.config)), name="executor-shelves"
            )
            await presence.begin()
            living = group.create_task(presence.run(), name="executor-presence")
            try:
                watcher = None
                if own is not None:
                    is_erasing, trusted = switches.is_erasing, switches.trusted
                    watcher = Watcher(context, own, registry, is_erasing, trusted)
                await _carry_out(context, limits, registry, presence, switches, watcher, own)
            finally:
                living.cancel()
                publishing.cancel()
                await presence.end()
    finally:
        await switches.close()


async def _carry_out(
    context: Context,
    limits: ExecutorLimits,
    registry: Registry,
    presence: Presence,
    switches: Switches,
    watcher: Watcher | None,
    own: Builtin | None,
) -> None:
    """Take turns, and look at what is watched, until cancelled."""
    bus = context.bus
    calls = CallsInHand(context, registry, presence, limits, switches)
    switches.on_change(calls.withdraw_erased)
    calendars = None
    if own is not None and context.settings.config.calendars:
        calendars = _keeper_of(context, own.calendars, switches)
    context.in_hand = lambda: len(calls)
    busy = tuple(one for one in (calls, watcher, calendars) if one is not None)
    roots = (context.settings.workspaces, context.settings.home / FOLDER)
    folders = erasure.Folders(roots, busy, switches)
    turns = ExecutorTurns(calls, Carrying(context, limits, calls.withdraw), limits)
    _observe(context, registry, calls)
    settings = context.settings
    book = CalendarBook(settings.config.calendars, settings.home) if own is None else own.calendars
    mailboxes = MailboxHolder(context, switches.is_erasing, book)
    await bus.listen(EXECUTOR_CANCEL, _Withdrawals(calls).take)
    worker = Worker(
        context,
        turns,
        limits.turns,
        switches.is_gone,
        end_beside=partial(calls.stop, grace_s=limits.stop_grace_s),
    )
    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(folders.run(), name="executor-erasing"),
            group.create_task(calls.withdraw_unawaited(), name="executor-looking"),
            group.create_task(mailboxes.run(), name="executor-mailboxes"),
            group.create_task(calls.unkept.run(), name="executor-attachments"),
        ]
        if calendars is not None:
            beside.append(group.create_task(calendars.run(), name="executor-calendars"))
        await _published(registry, limits)
        try:
            async with (
                worker.consuming(topology.EXECUTOR_TURNS, topology.EXECUTOR_TURNS_SYSTEM) as loops,
                requeue.answering(bus, work.SERVICE, worker.again),
                watcher.answering() if watcher else contextlib.nullcontext(),
            ):
                context.ready.set()
                await worker.run(loops)
        finally:
            for task in beside:
                task.cancel()


def _keeper_of(context: Context, book: CalendarBook, switches: Switches) -> CalendarKeeper:
    """Return who keeps the calendars; nothing that it needs is imported without any."""
    from .calendars.event_rows import EventRows
    from .calendars.keeper import CalendarKeeper
    from .calendars.listeners import CalendarFacts

    people = context.settings.config

    def zone(user: str, section: CalendarSection) -> ZoneInfo:
        person = switches.person(user, people.person_of(user))
        return zone_of(section, zone_named(person.timezone))

    telling = CalendarFacts(FactStore(context).take_calendar, zone)
    rows = EventRows(context.bus, zone)
    keeper = CalendarKeeper(context, (telling, rows), switches.is_erasing, beside=rows.run)
    book.wake = rows.wake = keeper.wake
    return keeper


async def _published(registry: Registry, limits: ExecutorLimits) -> None:
    """Wait until the cortex can know what there is, but not for ever."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.ready_wait_s):
            await registry.published()


class _Withdrawals:
    """Hears from any replica which calls nobody waits for any more."""

    def __init__(self, calls: CallsInHand) -> None:
        self._calls = calls

    async def take(self, msg: Any) -> None:
        try:
            self._calls.withdraw(work.decode_withdrawal(msg.data).call_id)
        except msgspec.MsgspecError as error:
            log.error("not readable", action="executor.withdrawal", error=str(error))


def _observe(context: Context, registry: Registry, calls: CallsInHand) -> None:
    """Let health and metrics tell how it is."""
    context.metrics.watch(metrics.EXECUTOR_RUNNING, lambda: calls.running)
    context.metrics.watch(metrics.EXECUTOR_WAITING, lambda: len(calls) - calls.running)
    registry.on_change = lambda: context.facts.update(registry.facts())
    registry.on_change()


if __name__ == "__main__":
    runtime.main("executor")
