"""Lanes: order within one, concurrency across, a bound over all."""

from __future__ import annotations

import asyncio

import pytest

from services.scheduler.lanes import Lanes


async def test_a_lane_takes_the_smallest_first_and_one_at_a_time() -> None:
    """S-8: timers of one session are promoted in order, also if a later one came first."""
    seen: list[int] = []
    busy = 0

    async def work(n: int) -> None:
        nonlocal busy
        busy += 1
        assert busy == 1
        await asyncio.sleep(0)
        seen.append(n)
        busy -= 1

    async with asyncio.TaskGroup() as group:
        lanes: Lanes[int] = Lanes(group, work, in_flight=4)
        for n in (3, 1, 2):
            lanes.put("lane", n, n)
        await lanes.below(1)
    assert seen == [1, 2, 3]


async def test_lanes_run_at_the_same_time_up_to_the_limit() -> None:
    """S-8: sessions don't wait for each other, and not all of them are in flight."""
    busy = most = 0
    go = asyncio.Event()

    async def work(n: int) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await go.wait()
        busy -= 1

    async with asyncio.TaskGroup() as group:
        lanes: Lanes[int] = Lanes(group, work, in_flight=4)
        for n in range(10):
            lanes.put(n, n, n)
        while busy < 4:
            await asyncio.sleep(0)
        go.set()
        await lanes.below(1)
    assert most == 4
    assert lanes.size == 0


async def test_a_fault_in_a_lane_ends_the_group() -> None:
    """S-8: a fault ends the term, and is seen; timers don't just stop coming."""

    async def work(_: int) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            lanes: Lanes[int] = Lanes(group, work, in_flight=1)
            lanes.put("lane", 1, 1)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup):
        await run()


async def test_nothing_is_begun_in_a_group_that_ends() -> None:
    """X-5: what failed is what is told, not that something came in while the group ended."""

    async def work(n: int) -> None:
        await asyncio.sleep(0)

    async def fail() -> None:
        raise LookupError("the lease is lost")

    with pytest.raises(ExceptionGroup) as found:  # noqa: PT012 - the group is what is tested
        async with asyncio.TaskGroup() as group:
            lanes: Lanes[int] = Lanes(group, work, in_flight=4)
            failing = group.create_task(fail())
            # Called back once it has failed, before the one who waits here is cancelled.
            failing.add_done_callback(lambda _: waiting.set_result(None))
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            try:
                await waiting
            finally:
                lanes.put("lane", 1, 1)
    assert [type(error) for error in found.value.exceptions] == [LookupError]
