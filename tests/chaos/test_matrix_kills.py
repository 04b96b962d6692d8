"""Synapse and services killed at random while a person writes and is answered in a room.

The room is the judge: what ann said is heard once, in the order in which it stands there; what is
said to her stands there once if its receipt says so, never twice, and in the order of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.chaos.ended import SETTLED_S, all_settled, records, texts_heard, toml_of
from tests.chaos.killable import killable, steps_of
from tests.support.chats import CHANNEL, pair, section
from tests.support.matrix_server import Correspondent, MatrixServer, running_matrix_server
from tests.support.pauses import pauses
from vigil.channels.matrix.composition import composed
from vigil.contracts import decode_said

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES: Final = ("gateway", "delivery", "cortex")
POINTS: Final = ("chat.heard", "chat.place")
"""At which the gateway ends, too, at first."""
PLAN: Final = {"gateway": POINTS, "delivery": (), "cortex": ()}
SETTINGS: Final = {
    "VIGIL_PORT": "0",
    # A server that is away opens the circuit of its channel; the test need not wait for long.
    "VIGIL_HEALTH__CIRCUIT_OPEN_S": "0.5",
    "VIGIL_HEALTH__CIRCUIT_OPEN_S_MAX": "1",
}
TERMS: Final = {
    "attempts_max": 100,
    "backoff_base_s": 0.5,
    "backoff_cap_s": 1.0,
    "sync_s": 2.0,
    "timeout_s": 5.0,
}


@pytest.fixture(scope="module")
def server() -> Iterator[MatrixServer]:
    with running_matrix_server() as running:
        yield running


def text_of(which: int) -> str:
    """Return what ann says: also what takes more than one event to answer, or is marked up."""
    more = ("", "\n\n*Grüße* 🙂", f"\n\n{'long ' * 3000}end", "\n\n```\n<b>\n```")
    return f"number {which}{more[which % len(more)]}"


def write(ann: Correspondent, room: str, which: int) -> None:
    """Send a message as a program of people does: again, until the server takes it."""
    content = {"msgtype": "m.text", "body": text_of(which)}
    while True:
        with contextlib.suppress(httpx2.HTTPError):
            ann.transact(room, "m.room.message", content, f"own-{which}")
            return


async def test_each_message_is_heard_once_and_said_once_whatever_is_killed(
    tmp_path: Path, server: MatrixServer, is_long: bool, seed: int
) -> None:
    """D-2, D-3: 40 kills of server and services in the long form."""
    kills, dice = 40 if is_long else 2, random.Random(seed)
    agent, ann = server.account("vigil"), server.account("ann")
    room = ann.create(agent.user)
    agent.join(room)
    (tmp_path / "vigil.toml").write_text(toml_of(CHANNEL, section(server, agent, **TERMS)))
    async with killable(tmp_path, steps_of(PLAN), SETTINGS) as (stack, processes):
        bus = await stack.bus("admin")
        await pair(bus, "ann", ann.user, room)
        async with asyncio.timeout(60):
            pause_s = pauses()
            while await bus.get_last("KV_CONFIG", "$KV.CONFIG.mail.place.>") is None:
                await asyncio.sleep(next(pause_s))

        async def converse() -> None:
            for which in range(kills):
                await asyncio.to_thread(write, ann, room, which)
                await asyncio.sleep(dice.uniform(0.0, 0.3))

        writing = asyncio.create_task(converse())
        killed: Counter[str] = Counter()
        while killed.total() < kills:
            await asyncio.sleep(dice.uniform(0.05, 0.8))
            name = dice.choice(("server", "server", *SERVICES)) if killed else "server"
            if name == "server":
                server.kill()
                await asyncio.sleep(dice.uniform(0.0, 0.4))
                await asyncio.to_thread(server.start)
            elif not processes.kill(name):
                continue
            killed[name] += 1
        await writing

        wanted = [text_of(which) for which in range(kills)]
        async with asyncio.timeout(SETTLED_S):
            while set(await texts_heard(bus)) < set(wanted):
                processes.check()
                await asyncio.sleep(0.1)
        await processes.plans_over(SETTLED_S)  # who ended at the last of them begins anew by itself
        ends = await all_settled(bus)
        assert await texts_heard(bus) == wanted
        said = [decode_said(one.data) for one in await records(bus, "out.said.*")]
        crashed = {one.crash_at.partition(":")[0] for one in processes.exits if one.is_crash}
        assert crashed == set(POINTS)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
        print(f"killed {dict(killed)}, seed {seed}: {Counter(ends.values())}")

    there = ann.messages(room)
    assert [one["content"]["body"] for one in there if one["sender"] == ann.user] == wanted
    meant: list[dict[str, Any]] = [
        event.content for one in said if ends[one.id] == "delivered" for event in composed(one, "")
    ]
    assert [one["content"] for one in there if one["sender"] == agent.user] == meant
    assert set(ends.values()) <= {"delivered", "void", "dropped"}
