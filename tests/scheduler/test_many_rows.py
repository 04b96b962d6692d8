"""As many rows as there may be: each slot has one entry, also if another scheduler takes over."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.support.examples import repeats
from tests.support.pauses import pauses
from tests.support.stack import Stack, running_stack
from vigil.board.kept import ROWS, BoundReached, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import (
    Change,
    TimetableRow,
    UserMessage,
    UserMessagePayload,
    decode_slot,
    encode,
)
from vigil.contracts.board import CronWork, OnceSchedule
from vigil.subjects import ANYBODY, SessionKey

COUNT: Final = repeats(10_000, fast=200)
OF_A_PERSON: Final = 100
IN_FLIGHT: Final = 64
PATIENCE_S: Final = 30.0 + COUNT / 50


def row(number: int, at: datetime) -> TimetableRow:
    """A row that is due then, outside of its hours: its slot is decided, and nothing is run."""
    before = (at - timedelta(hours=2)).time().isoformat("minutes")
    after = (at - timedelta(hours=1)).time().isoformat("minutes")
    return TimetableRow(
        id=f"{number:032x}",
        owner=f"person{number // OF_A_PERSON}",
        agent="vigil",
        name=f"row {number}",
        work=CronWork(prompt="Look around"),
        schedule=OnceSchedule(at=at),
        active_hours=f"{before}-{after}",
        is_ordered=True,
        made_at=at,
        scheduled_at=at,
    )


async def make_all(bus: Bus, at: datetime) -> None:
    board, room = KeptBoard(bus, ROWS), asyncio.Semaphore(IN_FLIGHT)

    async def make(number: int) -> None:
        async with room:
            await board.replace(0, row(number, at), Change(by="ann"), at)

    async with asyncio.TaskGroup() as group:
        for number in range(COUNT):
            group.create_task(make(number))


async def test_who_has_all_rows_that_they_may_has_the_systems_too(tmp_path: Path) -> None:
    """L-1, L-16: their own are counted, or nobody's would be made any more."""
    autonomy = {"enabled": True}
    sections: dict[str, Any] = {"memory": {"warm_wait_s": 0}, "autonomy": autonomy}
    async with running_stack(tmp_path, services=(), **sections) as stack:
        bus, now = await stack.bus("admin"), datetime.now(UTC)
        board, key = KeptBoard(bus, ROWS), SessionKey("ann", "vigil", "main")
        for number in range(OF_A_PERSON):
            own = replace(row(number, now + timedelta(days=9)), owner="ann")
            await board.replace(0, own, Change(by="ann"), now)
        said = UserMessage(
            id="e1", session_key=str(key), created_at=now, payload=UserMessagePayload(text="Hi")
        )
        await bus.publish(key.in_user, encode(said))
        await stack.start("scheduler")
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not (made := [r for r in await board.all(key.scope) if r.entity.is_of_system]):
                await asyncio.sleep(next(pause_s))
        one_more = replace(made[0].entity, id="f" * 32, made_by="person")
        with pytest.raises(BoundReached):
            await board.create(lambda _: one_more, key.scope, Change(by="ann"), now)


async def until_decided(bus: Bus, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while len(await bus.subjects("SLOTS", ANYBODY.slot())) < count:
            await asyncio.sleep(next(pause_s))


@pytest.mark.repeated
async def test_each_of_many_rows_has_one_entry(tmp_path: Path) -> None:
    """L-2, J-4: all due at once, and decided by two schedulers, one after the other."""
    async with running_stack(tmp_path, services=(), memory={"warm_wait_s": 0}) as stack:
        bus, at = await stack.bus("admin"), datetime.now(UTC)
        await make_all(bus, at)
        await decided_by_two(stack, bus)
        entries = [decode_slot(message.data) for message in await bus.read("SLOTS", ["slot.>"])]
        assert set(Counter(entry.row for entry in entries).values()) == {1}
        assert {(entry.state, entry.count) for entry in entries} == {("skipped", 1)}
        assert len(entries) == COUNT


async def decided_by_two(stack: Stack, bus: Bus) -> None:
    await stack.start("scheduler")
    await until_decided(bus, COUNT // 4)
    await stack.stop("scheduler")
    await stack.start("scheduler")
    await until_decided(bus, COUNT)
