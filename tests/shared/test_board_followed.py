"""The board as a replica knows it without asking: soon what is stored, and never older again."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.goal_records import AT, lesson_of
from tests.support.stack import Stack
from vigil.board.followed import FollowedBoard
from vigil.board.kept import KeptBoard
from vigil.board.kinds.preference import PREFERENCES
from vigil.bus.bus import Bus
from vigil.contracts import Change
from vigil.errors import Unavailable, WrongLastSequence
from vigil.subjects import Scope

ANN, BOB = (Scope("vigil", owner) for owner in ("ann", "bob"))
WAIT_S = 20


async def _change(bus: Bus, whose: Scope, number: int) -> None:
    """Store a preference whose value is that number, however long it takes."""
    board, one = KeptBoard(bus, PREFERENCES), lesson_of(number, owner=whose.owner)
    async with asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(Unavailable, WrongLastSequence):
                found = await board.find([whose], one.id)
                if found is not None and found.entity.value == number:
                    return
                expect = 0 if found is None else found.number
                await board.replace(expect, one, Change(by="test"), AT)
            await asyncio.sleep(0)


async def _values(board: FollowedBoard, whose: Scope) -> list[object]:
    return [one.value for one in await board.all(PREFERENCES, whose)]


async def _until(board: FollowedBoard, whose: Scope, number: int) -> list[int]:
    """Ask until it is that number; return all that was told."""
    told: list[int] = []
    async with asyncio.timeout(WAIT_S):
        while not told or told[-1] != number:
            with contextlib.suppress(Unavailable):
                told += [one.value for one in await board.all(PREFERENCES, whose)]
            await asyncio.sleep(0)
    return told


@pytest.mark.usefixtures("own_broker")
async def test_it_is_soon_what_is_stored(bare: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked all the while it changes, it never goes back; once it has told something, it asks the
    broker only for what changed since; and after the broker was away it follows on."""
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    board = FollowedBoard(bus, PREFERENCES)
    assert await _values(board, ANN) == []  # not followed yet: read
    following = asyncio.create_task(board.follow())
    last = 20
    changing = [_change(admin, whose, n) for n in range(1, last + 1) for whose in (ANN, BOB)]
    telling = [asyncio.create_task(_until(board, whose, last)) for whose in (ANN, BOB)]
    for change in changing:
        await change
    for told in await asyncio.gather(*telling):
        assert told == sorted(told)

    asked: list[str] = []
    get_last = bus.get_last

    async def counting(stream: str, subject: str) -> object:
        asked.append(subject)
        return await get_last(stream, subject)

    monkeypatch.setattr(bus, "get_last", counting)
    await _values(board, BOB)
    asked.clear()
    for number in range(last, last + 3):
        await _change(admin, ANN, number)
        await _until(board, ANN, number)
        assert await _values(board, BOB) == [last]
    assert not any(".bob." in subject for subject in asked)
    assert len(asked) <= 2 * 3  # read once for each change, or twice if it comes meanwhile

    bare.broker.watch()
    bare.broker.kill()
    await _change(admin, ANN, 99)
    await _until(board, ANN, 99)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
