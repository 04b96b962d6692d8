"""Being known to be alive, and when it may be said of another replica that it is gone."""

from __future__ import annotations

import contextlib
from datetime import datetime

import pytest

from services.executor.presence import JUDGE_AFTER_S, Presence
from tests.support.memories import until
from tests.support.stack import Stack
from vigil.bus.bus import Bus
from vigil.bus.lease import TTL_S, Leases
from vigil.clock import Clock, SystemClock
from vigil.errors import Unavailable


class Ahead:
    """The machine's clock, and what the test adds to it."""

    def __init__(self) -> None:
        self._clock: Clock = SystemClock()
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() + self.ahead_s


async def present(bus: Bus, name: str, clock: Ahead) -> Presence:
    presence = Presence(Leases(bus, name), "executor", name, clock)
    await presence.begin()
    return presence


async def test_one_that_lives_is_not_gone(bare: Stack) -> None:
    """S-12: and whoever gives its lease back is, as soon as others may say so."""
    bus, clock = await bare.bus("admin"), Ahead()
    one, two = await present(bus, "one", clock), await present(bus, "two", clock)
    assert one.is_sure
    assert not await one.is_gone("two")
    await two.end()
    with pytest.raises(Unavailable):  # it may only not have had the time to say so
        await one.is_gone("two")
    clock.ahead_s += JUDGE_AFTER_S / 2
    with pytest.raises(Unavailable):
        await one.is_gone("two")
    clock.ahead_s += JUDGE_AFTER_S / 2
    assert await one.is_gone("two")
    assert not await one.is_gone("one")


async def test_after_a_pause_nobody_is_sure_of_their_lease(bare: Stack) -> None:
    """RELIABILITY 3.2, a process that slept: by its own clock, before it asks the broker."""
    bus, clock = await bare.bus("admin"), Ahead()
    one = await present(bus, "one", clock)
    clock.ahead_s += TTL_S
    assert not one.is_sure
    await one.begin()
    assert one.is_sure


@pytest.mark.usefixtures("own_broker")
async def test_a_broker_that_forgot_its_leases_makes_nobody_dead(bare: Stack) -> None:
    """S-12: after its restart each takes its lease anew, and judges nobody before all could."""
    bus, clock = await bare.bus("admin"), Ahead()
    one, two = await present(bus, "one", clock), await present(bus, "two", clock)
    clock.ahead_s += JUDGE_AFTER_S / 3  # not so long that it is unsure of its own
    assert not await one.is_gone("two")
    bare.broker.watch()
    bare.broker.kill()

    async def has_taken_it_anew() -> bool:
        try:
            assert not await one.is_gone("two")  # the broker still runs
        except Unavailable as error:
            return "the time" in str(error)
        return False

    await until(has_taken_it_anew, "one has its lease again")
    for _ in range(2):  # it finds that its lease is lost, and takes it
        with contextlib.suppress(Unavailable):
            await two.is_gone("nobody")
    assert not await one.is_gone("two")
