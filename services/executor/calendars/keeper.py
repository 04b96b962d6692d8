"""Keeps calendars as they are where they are: each by one replica at a time, by a lease.

The lease only saves work: what is known is a file that is written whole, and another look at the
same place brings the same. What a look can't bring leaves what was known. A server that doesn't
answer is asked less and less; one that refused the password isn't shown the same one for hours.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog
from msgspec.structs import replace

from vigil import crash
from vigil.backoff import Backoff
from vigil.bus.bus import BusError
from vigil.bus.lease import Lease, Leases
from vigil.calendars import mirror
from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.mirror import Mirror, RefusedPassword
from vigil.calendars.places import PasswordRefused
from vigil.calendars.reader import CalendarReader, PasswordKept, refused_of
from vigil.calendars.section import CalendarSection
from vigil.calendars.state import FACT, CalendarState, CalendarStatus
from vigil.errors import Unavailable, VigilError
from vigil.observe.failures import count_failing
from vigil.runtime import Context
from vigil.subjects import token_of

from .listeners import CalendarListener, SeenCalendar

log = structlog.get_logger("vigil.executor")

AGAIN: Final = Backoff(15.0, 900.0)
"""Pauses while a calendar can't be looked at."""
FOLLOW_AGAIN_S: Final = 1.0
ERASED_S: Final = 5.0
"""How often it's looked whether somebody is still being erased."""
REMARKS_MAX: Final = 20
IsErasing = Callable[[str], bool]


class _ReadAt(NamedTuple):
    """What came of a look."""

    again_s: float
    """In how many seconds to look again."""
    agenda: CalendarAgenda | None
    """None: it was never seen."""
    is_fresh: bool


class CalendarKeeper:
    """Keeps all that are configured.

    Args:
        listeners: are told what is known after each look.
        is_erasing: whether a person is being erased: nothing of theirs is looked at any more.
        beside: what listeners follow; where the broker was away, it's begun anew.
    """

    def __init__(
        self,
        context: Context,
        listeners: tuple[CalendarListener, ...],
        is_erasing: IsErasing,
        *,
        beside: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._beside = beside
        self._context = context
        self._clock = context.clock
        self._listeners = listeners
        self._is_erasing = is_erasing
        config = context.settings.config
        self._leases = Leases(context.bus, context.instance, replicas=config.nats.replicas)
        self._wakes = {name: asyncio.Event() for name in config.calendars}
        self._locks = {name: asyncio.Lock() for name in config.calendars}
        self._failures: dict[str, int] = {}
        self._again_at_s: dict[str, float] = {}
        self._refused: dict[str, RefusedPassword] = {}

    def wake(self, name: str) -> None:
        """Look at a calendar now, if this replica keeps it."""
        if name in self._wakes:
            self._wakes[name].set()

    async def run(self) -> None:
        """Keep them until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._beside is not None:
                group.create_task(self._follow(self._beside), name="executor-calendar-rows")
            for name, section in self._context.settings.config.calendars.items():
                group.create_task(self._stand_by(name, section), name=f"executor-calendar-{name}")

    async def _follow(self, beside: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await beside()
            except (VigilError, BusError) as error:
                log.info("follows again", action="calendar.again", error=repr(error))
            await asyncio.sleep(FOLLOW_AGAIN_S)

    async def _stand_by(self, name: str, section: CalendarSection) -> None:
        shown = _Shown(self._context, name)

        async def keep(lease: Lease) -> None:
            shown.report("new", None, "")
            try:
                await lease.held(self._keep(name, section, shown), name=f"executor-keep-{name}")
            finally:
                shown.clear()

        def failed(error: Exception) -> None:
            about = {"calendar": name, "error": repr(error)}
            if isinstance(error, VigilError):
                log.info("keeps it again", action="calendar.again", **about)
            else:
                log.error("keeping it failed", action="calendar.keeper_failed", **about)

        await self._leases.whenever_free(f"calendar.{token_of('calendar', name)}", keep, failed)

    async def _keep(self, name: str, section: CalendarSection, shown: _Shown) -> None:
        reader = CalendarReader(
            section, self._context.settings.home, ports_never=self._context.bus.broker_ports
        )
        next_s, seen = self._again_at_s.get(name, 0.0), _ReadAt(0.0, None, is_fresh=False)
        while True:
            is_woken, wait_s = self._wakes[name].is_set(), ERASED_S
            self._wakes[name].clear()
            async with self._locks[name]:
                if not self._is_erasing(section.user):
                    if is_woken or self._clock.monotonic() >= next_s:
                        # Whatever ends it: nobody is asked in each second.
                        self._again_at_s[name] = self._clock.monotonic() + AGAIN.first_s
                        seen = await self._round(name, section, reader, shown)
                        next_s = self._clock.monotonic() + seen.again_s
                    told_s = await self._notify(name, section, seen)
                    wait_s = min(next_s - self._clock.monotonic(), told_s)
            await self._wait(name, wait_s)

    async def _notify(self, name: str, section: CalendarSection, seen: _ReadAt) -> float:
        """Tell how a calendar is; return in how many seconds it's another by itself."""
        if seen.agenda is None:
            return AGAIN.max_s
        known = SeenCalendar(name, section, seen.agenda, self._clock.now(), seen.is_fresh)
        return min([await one.seen(known) for one in self._listeners])

    async def erased(self) -> None:
        """Return when nothing of those who are being erased is looked at any more."""
        for name, section in self._context.settings.config.calendars.items():
            if self._is_erasing(section.user):
                async with self._locks[name]:
                    self._failures.pop(name, None)

    async def _round(
        self, name: str, section: CalendarSection, reader: CalendarReader, shown: _Shown
    ) -> _ReadAt:
        """Look once; return what is due, as it is or was last seen."""
        path = mirror.path_of(self._context.settings.home, name, section)
        known, now = None, self._clock.now()
        try:
            known = self._with_refusal(name, section, await self._load(path, section), now)
            found = await reader.read(known, now)
            if mirror.is_to_be_stored(known, found):
                await asyncio.to_thread(mirror.store, path, found)
        except PasswordKept as error:
            shown.report("refused", known, str(error))
            # Its file is looked at, and nobody asked.
            return await self._as_known(known, section.poll_s)
        except PasswordRefused as error:
            shown.report("refused", known, str(error))
            log.warning("refused", action="calendar.refused", calendar=name)
            await self._remember(name, path, section, known, error, now)
            return await self._as_known(known, section.poll_s)
        except (Unavailable, OSError) as error:
            self._failures[name] = self._failures.get(name, 0) + 1
            reason = str(error)
            if isinstance(error, OSError):
                reason = f"it can't be kept: {error.strerror}"
            shown.report("failing", known, reason)
            log.info("not seen", action="calendar.failed", calendar=name, reason=reason)
            return await self._as_known(known, AGAIN.after(self._failures[name]))
        crash.point("calendar.seen")
        self._failures.pop(name, None)
        self._refused.pop(name, None)
        shown.report("synced", found, "")
        agenda = await asyncio.to_thread(CalendarAgenda, found.objects)
        return _ReadAt(section.poll_s, agenda, is_fresh=True)

    async def _load(self, path: Path, section: CalendarSection) -> Mirror | None:
        """Raises: OSError."""
        return await asyncio.to_thread(mirror.load, path, mirror.source_of(section))

    def _with_refusal(
        self, name: str, section: CalendarSection, known: Mirror | None, now: datetime
    ) -> Mirror | None:
        """Return what is known, with a refusal that couldn't be stored."""
        refused = self._refused.get(name)
        if refused is None or (known is not None and known.refused is not None):
            return known
        return replace(known or mirror.nothing(section, now), refused=refused)

    async def _as_known(self, known: Mirror | None, again_s: float) -> _ReadAt:
        if known is None:
            return _ReadAt(again_s, None, is_fresh=False)
        agenda = await asyncio.to_thread(CalendarAgenda, known.objects)
        return _ReadAt(again_s, agenda, is_fresh=False)

    async def _remember(
        self,
        name: str,
        path: Path,
        section: CalendarSection,
        known: Mirror | None,
        error: PasswordRefused,
        now: datetime,
    ) -> None:
        """Remember what was refused, whatever ends this process; at least as long as it lives."""
        refused = refused_of(error, now)
        if refused is None:
            return
        self._refused[name] = refused
        before = known or mirror.nothing(section, now)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(mirror.store, path, replace(before, refused=refused))

    async def _wait(self, name: str, within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(within_s, 1.0)):
                await self._wakes[name].wait()


class _Shown:
    """What the health of this replica tells of a calendar."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self._name = name

    def report(self, state: CalendarStatus, known: Mirror | None, problem: str) -> None:
        remarks: list[str] = []
        events = 0
        if known is not None:
            remarks = mirror.remarks_of(known)
            events = sum(bool(one.uid and one.instances) for one in known.objects)
        view = CalendarState(
            state=state,
            synced_at=None if known is None else known.synced_at,
            problem=problem,
            remarks=tuple(remarks[:REMARKS_MAX]),
            events=events,
        )
        self._context.facts.setdefault(FACT, {})[self._name] = msgspec.to_builtins(view)
        self._count_failing()

    def clear(self) -> None:
        self._context.facts.get(FACT, {}).pop(self._name, None)
        self._count_failing()

    def _count_failing(self) -> None:
        config = self._context.settings.config
        count_failing(self._context, FACT, "calendars", config.calendars)
