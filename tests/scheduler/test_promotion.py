"""The promoter's races, with a store that waits until it's told to go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from services.scheduler import decide
from services.scheduler.config import SchedulerLimits
from services.scheduler.decide import PendingTimer
from services.scheduler.promotion import PauseSwitch, Promoter
from services.scheduler.store import TimerStore
from tests.support.stack import Stack
from tests.support.timers import after, cancel, now, schedule, session, turn_of, until
from vigil import contracts
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.contracts import Effect
from vigil.settings.config import Config
from vigil.settings.switches import PAUSED, Paused, Switches
from vigil.subjects import SessionKey

KEY, OTHER = session("t1"), session("t2")


class GatedStore(TimerStore):
    """Stores nothing; a promotion ends when the test opens its gate."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, SystemClock(), SchedulerLimits())
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: list[str] = []

    def open(self, *timer_ids: str) -> None:
        for timer_id in timer_ids:
            self.gates.setdefault(timer_id, asyncio.Event()).set()

    async def promote(self, entry: PendingTimer) -> None:
        timer_id = entry.record.timer_id
        self.begun.append(timer_id)
        await self.gates.setdefault(timer_id, asyncio.Event()).wait()

    async def remove(self, subject: str) -> None:
        return

    async def until_begun(self, *timer_ids: str) -> None:
        await until_true(lambda: self.begun == list(timer_ids))


async def until_true(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    await until(holds, first_s=0.001)


def changes(key: SessionKey, *effects: Effect) -> decide.Changes:
    return decide.changes_of(key.turn, contracts.encode(turn_of(key, effects)), None)


def entries(key: SessionKey, *timer_ids: str) -> list[PendingTimer]:
    """Return timers that are due, in this order."""
    found = changes(key, *(schedule(key, t, after(-10 + n)) for n, t in enumerate(timer_ids)))
    return [scheduled.entry for scheduled in found.scheduled]


def switch(switches: Switches, *, is_paused: bool) -> None:
    value = msgspec.json.encode(Paused(at=now(), by="test")) if is_paused else None
    switches._on_change(PAUSED, value)


@contextlib.asynccontextmanager
async def promoting(
    bus: Bus, store: GatedStore, switches: Switches, limits: SchedulerLimits
) -> AsyncIterator[Promoter]:
    async with asyncio.TaskGroup() as group:
        pause = PauseSwitch(switches, Config())
        promoter = Promoter(bus, store, SystemClock(), pause, limits, group)
        firing = group.create_task(promoter.fire())
        try:
            yield promoter
        finally:
            firing.cancel()


@pytest.mark.parametrize("steps", range(5))
async def test_a_timer_taken_before_a_pause_does_not_overtake(bare: Stack, steps: int) -> None:
    """S-8, S-11: paused and resumed while others hold the only slot, the order holds."""
    bus = await bare.bus("scheduler")
    store, switches = GatedStore(bus), Switches()
    limits = SchedulerLimits(promotions_in_flight=1)
    async with promoting(bus, store, switches, limits) as promoter:
        for entry in (*entries(KEY, "a", "b", "c"), *entries(OTHER, "x", "y")):
            promoter.add(entry)
        await store.until_begun("a")
        switch(switches, is_paused=True)
        for entry in entries(OTHER, "deadline"):
            record = msgspec.structs.replace(entry.record, kind="deadline")
            promoter.add(msgspec.structs.replace(entry, record=record))
        store.open("a")
        await store.until_begun("a", "deadline")
        store.open("b", "c", "x", "y", "deadline")
        for _ in range(steps):  # of the event loop: another task is the next one each time
            await asyncio.sleep(0)
        switch(switches, is_paused=False)
        await until_true(lambda: len(promoter.agenda) == 0)
    assert [t for t in store.begun if t in "abc"] == ["a", "b", "c"]
    assert [t for t in store.begun if t in "xy"] == ["x", "y"]


async def test_a_timer_cancelled_while_it_waits_is_not_promoted(bare: Stack) -> None:
    """S-6: due already, but behind another one of its session."""
    bus = await bare.bus("scheduler")
    store, switches = GatedStore(bus), Switches()
    async with promoting(bus, store, switches, SchedulerLimits()) as promoter:
        for entry in entries(KEY, "a", "b", "c"):
            promoter.add(entry)
        await store.until_begun("a")
        (cancelled,) = changes(KEY, cancel(KEY, "b")).cancelled
        await promoter.cancel(cancelled)
        store.open("a", "c")
        await until_true(lambda: len(promoter.agenda) == 0)
    assert store.begun == ["a", "c"]


async def test_an_earlier_timer_that_comes_late_goes_first(bare: Stack) -> None:
    """S-8: in order of fire_at, also among those that wait for the same session."""
    bus = await bare.bus("scheduler")
    store, switches = GatedStore(bus), Switches()
    async with promoting(bus, store, switches, SchedulerLimits()) as promoter:
        first, earlier, later = entries(KEY, "first", "earlier", "later")
        promoter.add(first)
        await store.until_begun("first")
        promoter.add(later)
        promoter.add(earlier)
        await until_true(lambda: promoter.agenda.is_taken(earlier))
        store.open("first", "earlier", "later")
        await until_true(lambda: len(promoter.agenda) == 0)
    assert store.begun == ["first", "earlier", "later"]
