"""Lanes: one turn of a session at a time, the oldest first, sessions independent."""

from __future__ import annotations

import asyncio

import pytest

from services.delivery.lanes import Fate, Lane, Lanes
from vigil.bus.bus import Message


def turn_of(session: str, seq: int) -> Message:
    return Message(f"session.vigil.ann.{session}.turn", b"", {}, seq)


class Recorder:
    """Handles turns as told, and keeps what it saw."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.back: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.fates: dict[int, list[Fate]] = {}

    async def handle(self, turn: Message, lane: Lane) -> Fate:
        if gate := self.gates.get(turn.seq):
            await gate.wait()
        fates = self.fates.get(turn.seq)
        fate = fates.pop(0) if fates else Fate.FINISHED
        if fate is not Fate.OVERTAKEN:
            self.seen.append(turn.seq)
        return fate

    async def give_back(self, turn: Message) -> None:
        self.back.append(turn.seq)

    def lanes(self, group: asyncio.TaskGroup, *, turns_max: int = 100) -> Lanes:
        return Lanes(self.handle, self.give_back, group, turns_max=turns_max)


async def test_the_oldest_turn_goes_first() -> None:
    """S-10: deliveries in any order; and an idle lane is forgotten."""
    work = Recorder()
    async with asyncio.TaskGroup() as group:
        lanes = work.lanes(group)
        for seq in (5, 3, 9, 1):
            lanes.put(turn_of("t1", seq))
    assert work.seen == [1, 3, 5, 9]
    assert len(lanes) == 0


async def test_an_overtaken_turn_steps_back() -> None:
    """S-10: a turn that waits lets an older one of its session go first."""
    work = Recorder()
    work.gates[5] = asyncio.Event()
    work.fates[5] = [Fate.OVERTAKEN]
    async with asyncio.TaskGroup() as group:
        lanes = work.lanes(group)
        lanes.put(turn_of("t1", 5))
        await asyncio.sleep(0)
        lanes.put(turn_of("t1", 2))
        work.gates[5].set()
    assert work.seen == [2, 5]


async def test_newer_turns_go_back_with_the_one_that_waits() -> None:
    """S-10: they are said after it, so they can't go on either; other sessions can."""
    work = Recorder()
    work.fates[1] = [Fate.GIVEN_BACK]
    async with asyncio.TaskGroup() as group:
        lanes = work.lanes(group)
        for seq in (1, 2, 3):
            lanes.put(turn_of("t1", seq))
        lanes.put(turn_of("t2", 4))
    assert work.back == [2, 3]
    assert work.seen == [1, 4]


async def test_what_is_in_hand_is_bounded() -> None:
    """S-10: no more is taken than may be held."""
    work = Recorder()
    work.gates[1] = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        lanes = work.lanes(group, turns_max=2)
        lanes.put(turn_of("t1", 1))
        lanes.put(turn_of("t1", 2))
        waiting = asyncio.ensure_future(lanes.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        work.gates[1].set()
        await waiting
    assert work.seen == [1, 2]


async def test_stopping_finishes_what_was_begun_and_leaves_the_rest() -> None:
    """S-10: graceful stop."""
    work = Recorder()
    work.gates = {1: asyncio.Event(), 7: asyncio.Event()}
    async with asyncio.TaskGroup() as group:
        lanes = work.lanes(group)
        for session, seq in (("t1", 1), ("t1", 2), ("t2", 7), ("t2", 8)):
            lanes.put(turn_of(session, seq))
        await asyncio.sleep(0)
        work.gates[1].set()
        left = await lanes.stop(grace_s=0.1)
    assert work.seen == [1]
    assert sorted(turn.seq for turn in left) == [2, 7, 8]
    assert len(lanes) == 0


async def test_a_bug_in_a_lane_ends_the_service() -> None:
    """S-10: a task that dies never dies silently."""

    async def broken(turn: Message, lane: Lane) -> Fate:
        raise RuntimeError("bug")

    async def serve() -> None:
        async with asyncio.TaskGroup() as group:
            lanes = Lanes(broken, Recorder().give_back, group, turns_max=10)
            lanes.put(turn_of("t1", 1))
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(serve(), 5)
