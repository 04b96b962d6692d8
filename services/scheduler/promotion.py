"""From due to stored: fires on time and in order, then takes the schedule away.

The agenda fires; the broker's own schedule, BACKSTOP_DELAY_S later, only counts when nobody
was here. Removing a schedule is therefore never urgent, and gives way to promotions.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Final

import msgspec

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.clock import PACE_S, Clock, until_next
from vigil.contracts.base import SET_BACK_MIN
from vigil.errors import InvalidInput, Unavailable
from vigil.marks.thread_mark import Deletion
from vigil.observe.trace import HEADER
from vigil.settings.config import Config
from vigil.settings.cortex import Cortex
from vigil.settings.hours import pause_of
from vigil.settings.switches import Switches
from vigil.subjects import Scope, SessionKey
from vigil.worker.lanes import Lanes

from . import decide
from .config import SchedulerLimits
from .decide import Agenda, Cancelled, PendingTimer
from .store import TimerStore

_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class PauseSwitch:
    """The pause switches, and how often one was touched. Lives as long as the process."""

    def __init__(self, switches: Switches, config: Config) -> None:
        self._switches = switches
        self._config = config
        self.changes = 0
        self.changed = asyncio.Event()
        self.threads_changed = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        switches.on_change(self._on_change)

    @property
    def is_on(self) -> bool:
        return self._switches.paused is not None

    @property
    def is_erasing_anybody(self) -> bool:
        return self._switches.is_erasing_anybody

    def is_gone(self, key: SessionKey) -> bool:
        """Whether a session is being deleted: no timer of it counts any more."""
        return self._switches.is_gone(key)

    @property
    def is_deleting(self) -> bool:
        """Whether a conversation is being deleted, or a person erased."""
        return self.is_erasing_anybody or bool(self.deleted_threads)

    @property
    def deleted_threads(self) -> tuple[Deletion, ...]:
        """The conversations that are to be deleted."""
        return self._switches.threads.open

    def is_erasing(self, user: str) -> bool:
        """Whether that person is being erased: no timer of theirs counts any more."""
        return self._switches.is_erasing(user)

    def changed_at(self, whose: Scope) -> datetime:
        """Return when that person last changed their hours, or somebody paused the agent or let it
        go on."""
        return self._switches.changed_at(whose)

    def is_on_for(self, whose: Scope, now: datetime) -> bool:
        """Whether that person, or somebody for all, paused what is done unasked, or this agent."""
        configured = self._config.person_of(whose.owner)
        until = pause_of(self._switches.person(whose.owner, configured, whose.agent))
        return self.is_on or (until is not None and now < until)

    def zone_of(self, user: str) -> str:
        """Return that person's time zone, as it is now."""
        return self._switches.person(user, self._config.person_of(user)).timezone

    @property
    def cortex(self) -> Cortex:
        """What of `[cortex]` holds now."""
        return self._switches.cortex(self._config.cortex)

    async def changed_again(self) -> None:
        """Wait until a switch is changed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _on_change(self) -> None:
        self.changes += 1
        self.changed.set()
        self.threads_changed.set()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class _Promotion(msgspec.Struct, frozen=True):
    """A due entry on its way, and the state of the pause switch when it was taken."""

    entry: PendingTimer
    pause_changes: int


class Promoter:
    """One term's agenda and the tasks that work on it."""

    def __init__(
        self,
        bus: Bus,
        store: TimerStore,
        clock: Clock,
        pause: PauseSwitch,
        limits: SchedulerLimits,
        group: asyncio.TaskGroup,
    ) -> None:
        self._bus = bus
        self._store = store
        self._clock = clock
        self._pause = pause
        self._limits = limits
        self._wake: Final = pause.changed
        self._lanes: Lanes[_Promotion] = Lanes(
            group, self._promote, slots=limits.promotions_in_flight
        )
        self._removals: asyncio.Queue[tuple[PendingTimer, float]] = asyncio.Queue()
        self._deliveries: dict[str, Message] = {}
        """What the broker fired by itself and waits for its acknowledgement, by subject."""
        self._pause_seen = -1
        """How often the switches had changed when it was last looked what was put off by others."""
        self._looked_at: datetime | None = None
        """When it was last looked what is due."""
        self.agenda = Agenda()

    def add(self, entry: PendingTimer) -> None:
        """Put a stored timer on the agenda; one that is known or settled changes nothing."""
        if self._pause.is_gone(entry.key):
            return
        next_at = self.agenda.next_at(is_paused=self._pause.is_on)
        if not self.agenda.add(entry):
            return
        if entry.is_outdated(self._pause.changed_at):
            self._pause_seen = -1
        if self._pause_seen < 0 or next_at is None or entry.record.fire_at < next_at:
            self._wake.set()

    async def cancel(self, cancelled: Cancelled) -> None:
        """Forget a timer and remove it, and what the broker may have made of it."""
        entry = self.agenda.drop(cancelled.subject)
        if entry is not None:
            # What the broker fired of it may be on its way already, or its turn come again.
            self.agenda.settle(entry)
        await self._store.remove(cancelled.subject)
        if entry is None or self._may_be_fired(entry):
            await self._store.remove(cancelled.due_subject)
        await self._acknowledge(cancelled.subject)

    async def receive(self, message: Message) -> None:
        """Take what the broker fired by itself."""
        try:
            entry = decide.entry_of(message.subject, message.data, message.header(HEADER))
        except InvalidInput as error:
            await self.reject(message, error)
            await self._ack(message)
            return
        if self.agenda.is_settled(entry):
            await self._store.remove(entry.due_subject)
            await self._ack(message)
            return
        self.add(entry)
        if self._is_held(entry):
            with contextlib.suppress(Unavailable):
                await self._bus.nak(message, self._limits.held_again_s)
        else:
            self._deliveries[entry.subject] = message

    async def reject(self, message: Message, cause: InvalidInput) -> None:
        """Dead-letter a message of TIMERS and delete it."""
        await self._store.bury(message, cause)
        await self._store.discard(message)

    async def fire(self) -> None:
        """Fire what is due, for as long as the term lasts."""
        while True:
            self._wake.clear()
            if self._pause.is_deleting:
                self.agenda.forget(self._pause.is_gone)
            due = self.agenda.due(self._clock.now(), is_paused=self._pause.is_on)
            for entry in (*due, *self._outdated()):
                promotion = _Promotion(entry, self._pause.changes)
                self._lanes.put(entry.key, entry.order, promotion)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._sleep_s()):
                    await self._wake.wait()

    def _outdated(self) -> list[PendingTimer]:
        """Take what is put off by hours that were changed since, or by a clock that was ahead; its
        session decides anew."""
        # At first what was planned before tells what clock there was: nobody looked at it.
        before = self.agenda.planned_at() if self._looked_at is None else self._looked_at
        self._looked_at = self._clock.now()
        if before is not None and before - self._looked_at > SET_BACK_MIN:
            return self.agenda.outdated(lambda _: _LATEST, is_paused=self._pause.is_on)
        if self._pause_seen == self._pause.changes:
            return []
        self._pause_seen = self._pause.changes
        return self.agenda.outdated(self._pause.changed_at, is_paused=self._pause.is_on)

    async def clean(self) -> None:
        """Remove the schedules of promoted timers, for as long as the term lasts."""
        while True:
            entry, since = await self._removals.get()
            with contextlib.suppress(TimeoutError):
                left_s = since + self._limits.removals_defer_s - self._clock.monotonic()
                async with asyncio.timeout(max(left_s, 0)):
                    await self._lanes.below(1)
            await self._store.remove(entry.subject)
            if entry.subject in self._deliveries or self._may_be_fired(entry):
                await self._store.remove(entry.due_subject)
            crash.point("scheduler.remove.after")
            await self._acknowledge(entry.subject)

    async def _promote(self, promotion: _Promotion) -> None:
        entry = promotion.entry
        if not self.agenda.is_taken(entry) or self._pause.is_gone(entry.key):
            return
        if entry.is_follow_up and promotion.pause_changes != self._pause.changes:
            # All that were taken before the switch go back, so that none overtakes another.
            self.agenda.give_back(entry)
            self._wake.set()
            return
        crash.point("scheduler.promote.before")
        await self._store.promote(entry)
        crash.point("scheduler.promote.after")
        self.agenda.settle(entry)
        self._removals.put_nowait((entry, self._clock.monotonic()))

    def _sleep_s(self) -> float:
        next_at = self.agenda.next_at(is_paused=self._pause.is_on)
        every_s = min(self._limits.sleep_max_s, PACE_S.get())
        longest_s = until_next(every_s, asyncio.get_running_loop().time())
        if next_at is None:
            return longest_s
        left_s = (next_at - self._clock.now()).total_seconds()
        return min(max(left_s, 0), longest_s)

    def _is_held(self, entry: PendingTimer) -> bool:
        is_paused = entry.is_follow_up and self._pause.is_on
        return is_paused or entry.record.fire_at > self._clock.now()

    def _may_be_fired(self, entry: PendingTimer) -> bool:
        return decide.may_be_fired(entry.record.fire_at, self._clock.now())

    async def _acknowledge(self, subject: str) -> None:
        message = self._deliveries.pop(subject, None)
        if message is not None:
            await self._ack(message)

    async def _ack(self, message: Message) -> None:
        crash.point("scheduler.due.before_ack")
        with contextlib.suppress(Unavailable):  # it comes again, and is known to be settled
            await self._bus.ack(message)
