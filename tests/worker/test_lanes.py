"""Lanes: order within one, concurrency across, a bound over all, and a stop with grace."""

from __future__ import annotations

import asyncio

import pytest

from vigil.worker.lanes import Lanes


class Recorder:
    """Works on numbers, and keeps what it saw; those with a gate wait for it."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.busy = self.most = 0

    async def work(self, n: int) -> None:
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            if gate := self.gates.get(n):
                await gate.wait()
            await asyncio.sleep(0)
            self.seen.append(n)
        finally:
            self.busy -= 1


async def test_a_lane_takes_the_oldest_first_and_one_at_a_time() -> None:
    """S-8, S-10: deliveries in any order; and an idle lane is forgotten."""
    recorder = Recorder()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, recorder.work, slots=4)
        for n in (5, 3, 9, 1):
            lanes.put("lane", n, n)
        await lanes.below(1)
    assert recorder.seen == [1, 3, 5, 9]
    assert recorder.most == 1
    assert (len(lanes), lanes.size) == (0, 0)


async def test_lanes_run_at_the_same_time_up_to_the_limit() -> None:
    """S-8: sessions don't wait for each other, and not all of them are in flight."""
    recorder = Recorder()
    recorder.gates = {n: asyncio.Event() for n in range(10)}
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, recorder.work, slots=4)
        for n in range(10):
            lanes.put(n, n, n)
        while recorder.busy < 4:
            await asyncio.sleep(0)
        for gate in recorder.gates.values():
            gate.set()
        await lanes.below(1)
    assert recorder.most == 4


async def test_a_lane_may_be_broad() -> None:
    """Several of one lane at once, and no more than that."""
    recorder = Recorder()
    recorder.gates = {n: asyncio.Event() for n in range(6)}
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, recorder.work, abreast=3)
        for n in range(6):
            lanes.put("lane", n, n)
        while recorder.busy < 3:
            await asyncio.sleep(0)
        assert lanes.size_of("lane") == 6
        for gate in recorder.gates.values():
            gate.set()
        await lanes.below(1)
    assert recorder.most == 3
    assert lanes.size_of("lane") == 0


async def test_what_steps_back_lets_the_older_one_go_first() -> None:
    """S-10: a turn that waits lets an older one of its session go first."""
    seen: list[int] = []
    is_waiting, go_on = asyncio.Event(), asyncio.Event()

    async def work(n: int) -> None:
        if n == 5 and not is_waiting.is_set():
            is_waiting.set()
            await go_on.wait()
            assert lanes.has_older("lane", n)
            lanes.put("lane", n, n)
        else:
            seen.append(n)

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, work)
        lanes.put("lane", 5, 5)
        await is_waiting.wait()
        assert not lanes.has_older("lane", 5)
        lanes.put("lane", 2, 2)
        go_on.set()
    assert seen == [2, 5]
    assert lanes.size == 0


async def test_what_waits_in_a_lane_can_be_taken_out_of_it() -> None:
    """S-10: what is said after a turn that goes back can't go on; other sessions can."""
    seen: list[int] = []
    drained: list[int] = []

    async def work(n: int) -> None:
        seen.append(n)
        if n == 1:
            drained.extend(lanes.drain("t1"))

    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, work)
        for n in (1, 3, 2):
            lanes.put("t1", n, n)
        lanes.put("t2", 4, 4)
    assert drained == [2, 3]
    assert seen == [1, 4]
    assert lanes.size == 0


async def test_what_is_in_hand_is_bounded() -> None:
    """S-10: no more is taken than may be held."""
    recorder = Recorder()
    recorder.gates[1] = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, recorder.work)
        lanes.put("lane", 1, 1)
        lanes.put("lane", 2, 2)
        waiting = asyncio.ensure_future(lanes.below(2))
        await asyncio.sleep(0)
        assert not waiting.done()
        recorder.gates[1].set()
        await waiting
    assert recorder.seen == [1, 2]


async def test_stopping_finishes_what_was_begun_and_begins_nothing() -> None:
    """S-10: graceful stop; what doesn't end in time is cut off."""
    recorder = Recorder()
    recorder.gates = {1: asyncio.Event(), 7: asyncio.Event()}
    async with asyncio.TaskGroup() as group:
        lanes = Lanes(group, recorder.work)
        for key, n in (("t1", 1), ("t1", 2), ("t2", 7), ("t2", 8)):
            lanes.put(key, n, n)
        while recorder.busy < 2:
            await asyncio.sleep(0)
        recorder.gates[1].set()
        await lanes.stop(grace_s=0.05)
    assert recorder.seen == [1]
    assert (len(lanes), lanes.size) == (0, 0)


async def test_a_fault_in_a_lane_ends_the_group() -> None:
    """S-8, S-10: a task that dies never dies silently."""

    async def work(_: int) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            Lanes(group, work).put("lane", 1, 1)
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
            lanes: Lanes[int] = Lanes(group, work, slots=4)
            failing = group.create_task(fail())
            # Called back once it has failed, before the one who waits here is cancelled.
            failing.add_done_callback(lambda _: waiting.set_result(None))
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            try:
                await waiting
            finally:
                lanes.put("lane", 1, 1)
    assert [type(error) for error in found.value.exceptions] == [LookupError]
