"""A follower shared by many: whoever joins gets all of their session, and nothing twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.shared.test_bus import publish_until_stored
from tests.support.examples import repeats
from tests.support.stack import Stack, running_stack
from vigil.bus import shared
from vigil.bus.bus import Bus
from vigil.bus.shared import SessionFollower, SharedFollower
from vigil.subjects import SessionKey

KEYS = tuple(SessionKey("ann", "vigil", f"t{n}") for n in range(4))
SYSTEM = SessionKey("ann", "vigil", "_worker-1")
KEY = SessionKey("ann", "vigil", "t1")
WRITES = repeats(400, fast=50)


def _events(bus: Bus) -> SharedFollower:
    return SharedFollower(bus, lambda key: key.in_all)


async def _write(
    bus: Bus,
    chance: random.Random,
    stored: dict[SessionKey, list[int]],
    written: list[asyncio.Event],
) -> None:
    for number, is_written in enumerate(written):
        key = chance.choice([*KEYS, SYSTEM])
        kind = chance.choice(("control", "timer", "external"))
        stored[key].append((await bus.publish(key.in_event(kind), b"%d" % number)).seq)
        await bus.publish(key.turn_for(""), b"not followed")
        is_written.set()


async def _follow(
    events: SharedFollower, key: SessionKey, start: int, seed: int, written: list[asyncio.Event]
) -> list[int]:
    """Take what comes, at the pace of chance, until all is written and nothing comes any more."""
    chance = random.Random(seed)
    await chance.choice(written).wait()
    follower = await events.follow(key, start)
    assert isinstance(follower, SessionFollower)
    got: list[int] = []
    while True:
        is_last = written[-1].is_set()
        # Most of these waits are cut short, in the middle of a join, too.
        message = await follower.next_within(0.5 if is_last else chance.choice((0, 0.0005, 0.01)))
        if message is not None:
            got.append(message.seq)
        elif is_last:
            await follower.close()
            return got
        for _ in range(chance.choice((0, 0, 0, 100))):
            await asyncio.sleep(0)


@pytest.mark.repeated
@pytest.mark.parametrize("partitions", [1, 4])
async def test_joins_are_exact(
    tmp_path: Path, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever they join, however slow they are, and whatever is handed out meanwhile."""
    monkeypatch.setattr(shared, "WAITING_MAX", 3)
    monkeypatch.setattr(shared, "PAGE", 5)
    monkeypatch.setattr(shared, "SINGLY_MAX", 2)
    async with running_stack(tmp_path, services=(), nats={"partitions": partitions}) as stack:
        admin, bus = await stack.bus("admin"), await stack.bus("cortex")
        chance = random.Random(partitions)
        stored: dict[SessionKey, list[int]] = {key: [] for key in (*KEYS, SYSTEM)}
        events, written = _events(bus), [asyncio.Event() for _ in range(WRITES)]
        starts = [(key, chance.randrange(WRITES)) for key in stored for _ in range(6)]
        following = [
            asyncio.create_task(_follow(events, key, start, seed, written))
            for seed, (key, start) in enumerate(starts)
        ]
        await _write(admin, chance, stored, written)
        for (key, start), got in zip(starts, await asyncio.gather(*following), strict=True):
            assert got == [seq for seq in stored[key] if seq >= start]
        await events.close()


async def _seqs(follower: SessionFollower, count: int) -> list[int]:
    async with asyncio.timeout(10):
        return [(await anext(follower)).seq for _ in range(count)]


async def test_what_was_stored_before_is_told_from_what_comes(bare: Stack) -> None:
    admin, bus = await bare.bus("admin"), await bare.bus("cortex")
    events = _events(bus)
    empty = await events.follow(KEY, 1)
    assert not empty.has_any
    await empty.close()
    seqs = [(await admin.publish(KEY.in_user, b"x")).seq for _ in range(shared.SINGLY_MAX + 2)]
    newest = await events.follow(KEY, seqs[-1])
    assert await _seqs(newest, 1) == seqs[-1:]
    follower = await _events(bus).follow(KEY, seqs[1])
    assert follower.has_any
    assert await _seqs(follower, len(seqs) - 1) == seqs[1:]
    assert follower.opened_at == seqs[-1]
    assert follower.take_nowait() is None


@pytest.mark.usefixtures("own_broker")
async def test_it_goes_on_after_a_broker_restart(bare: Stack) -> None:
    """Also for who joined before it, without gap or repeat."""
    bus, other = await bare.bus("cortex"), await bare.bus("admin")
    events = _events(bus)
    await other.publish(KEY.in_user, b"0")
    follower = await events.follow(KEY, 1)
    bare.broker.watch()
    bare.broker.kill()
    for number in range(1, 6):
        await publish_until_stored(other, b"%d" % number)
    async with asyncio.timeout(10):
        joined = await events.follow(KEY, 3)
        assert [(await anext(follower)).data for _ in range(6)] == [b"%d" % n for n in range(6)]
        assert [(await anext(joined)).data for _ in range(4)] == [b"%d" % n for n in range(2, 6)]
    await events.close()
