"""A conversation is deleted, and whoever does it is killed again and again (X-9)."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.killable import killable
from tests.chaos.processes import Step
from tests.keeping.test_erase import canaries
from tests.support import every_kind
from tests.support.every_kind import Kept
from tests.support.examples import repeats
from vigil.bus.bus import Bus
from vigil.contracts import SpawnSession, decode_turn
from vigil.erasure.thread import filters_of_thread
from vigil.marks import thread_mark
from vigil.marks.thread_mark import Deletion
from vigil.subjects import SessionKey

KEY: Final = SessionKey("ann", "vigil", "t1")
OTHERS: Final = (SessionKey("ann", "vigil", "t2"), SessionKey("bob", "vigil", "t1"))
TEXT: Final = "CANARYtext"
KILLS: Final = repeats(20, fast=2)
POINTS: Final = {
    "thread.looked": 2,
    "erase.message.after": 15,
    "thread.swept": 1,
    "thread.before_done": 1,
}
"""Where, and at which passage at most."""
PATIENCE_S: Final = 120.0


def records_of(key: SessionKey, text: str) -> list[Kept]:
    """Return one record of each kind that a conversation has."""
    found = []
    for one in every_kind.of_contracts(key.user, text):
        record = json.loads(one.data)
        is_request = record.get("entity", {}).get("session_key") == f"{key.user}:vigil:t1"
        is_theirs = f".{key.user}.t1" in one.subject or one.subject.endswith(".t1")
        if not (is_theirs or is_request):
            continue
        data = one.data.replace(f"{key.user}:vigil:t1".encode(), str(key).encode())
        found.append(Kept(one.subject.replace(".t1", f".{key.thread}"), data))
    return found


async def store(bus: Bus, key: SessionKey, text: str) -> list[SessionKey]:
    """Store those, and a turn of each session that they start; return these."""
    children: dict[SessionKey, bytes] = {}
    for one in records_of(key, text):
        await every_kind.store_one(bus, one, str(key))
        if key.is_turn(one.subject):
            for effect in decode_turn(one.data).effects:
                if isinstance(effect, SpawnSession):
                    children[key.of_kind(effect.payload.kind, effect.id)] = one.data
    for child, data in children.items():
        turn = data.replace(str(key).encode(), str(child).encode()) + b" "
        await bus.publish(child.turn_for("x"), turn)
    return list(children)


async def stored(bus: Bus, key: SessionKey) -> dict[str, list[bytes]]:
    """Return what is stored of a conversation, by subject."""
    found: dict[str, list[bytes]] = {}
    for name, filters in filters_of_thread([key]).items():
        for stream in (await bus.layout()).streams(name):
            for message in await bus.read(stream, filters):
                found.setdefault(message.subject, []).append(message.data)
    return found


async def log_of(bus: Bus, key: SessionKey) -> list[bytes]:
    """Return the records of a session, which the scheduler adds to and never changes."""
    return [message.data for message in await bus.read(key.stream, [key.everything])]


async def until_done(bus: Bus) -> Deletion:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            mark = await thread_mark.find(bus, KEY)
            assert mark is not None
            if not mark.is_open:
                return mark
            await asyncio.sleep(0.1)


@pytest.mark.repeated
@pytest.mark.usefixtures("halved_times")
async def test_killed_anywhere_nothing_of_a_deleted_conversation_is_left(tmp_path: Path) -> None:
    """One of every kind of its records, and of sessions that it started; no other loses any."""
    dice = random.Random(47)
    names = dice.choices(sorted(POINTS), k=KILLS)
    steps = [Step(point=one, passage=dice.randint(1, POINTS[one])) for one in names]
    async with killable(tmp_path, {}, {}) as (stack, processes):
        admin = await stack.bus("admin")
        for other in OTHERS:
            await store(admin, other, "theirs")
        before = [await log_of(admin, one) for one in OTHERS]
        assert all(before)
        children = await store(admin, KEY, TEXT)
        assert children
        assert any(one.endswith(".blk") for one in canaries(tmp_path)), "the positive control"
        await thread_mark.begin(admin, KEY, by="ann", now=datetime.now(UTC))
        processes.start("scheduler", steps)
        mark = await until_done(admin)
        assert [one for one in canaries(tmp_path) if not one.endswith(".log")] == []
        assert [await stored(admin, one) for one in (KEY, *children)] == [{}] * (1 + len(children))
        after = [await log_of(admin, one) for one in OTHERS]
        assert [
            [one for one in a if one in b] for a, b in zip(after, before, strict=True)
        ] == before
        assert TEXT.encode() not in repr(mark).encode()
        assert mark.deleted
        assert [exit_ for exit_ in processes.exits if exit_.is_crash], "it was killed"
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
