"""Timers of the sessions of the cortex itself, which have a stream of their own (SPEC C-1, S-8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.support.stack import Stack
from tests.support.timers import after, cancel, commit, pending, schedule, session, turn_of, until
from vigil import contracts
from vigil.backup import rearm
from vigil.bus.bus import Bus
from vigil.contracts import Digest, Pause, Task, TimerFired, decode_dead_letter, decode_event
from vigil.observe import trace
from vigil.subjects import SessionKey

PARENT = session()
WORKER = PARENT.of_kind("worker", "1f")


async def fired(admin: Bus, key: SessionKey) -> list[str]:
    found = []
    for message in await admin.read(key.stream, [key.in_event("timer")]):
        event = decode_event(message.data)
        assert isinstance(event, TimerFired)
        assert event.session_key == str(key)
        found.append(event.payload.timer_id)
    return found


async def until_fired(admin: Bus, key: SessionKey, *timer_ids: str) -> None:
    async def stored() -> bool:
        return await fired(admin, key) == list(timer_ids)

    await until(stored)


async def test_timers_of_both_streams_fire_each_in_its_own(bare: Stack) -> None:
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    for key in (WORKER, PARENT):
        timers = [schedule(key, f"{t}", after(0.2), kind="deadline") for t in ("a", "b")]
        await commit(admin, key, *timers)
    await commit(admin, WORKER, cancel(WORKER, "b"))
    await until_fired(admin, WORKER, "a")
    await until_fired(admin, PARENT, "a", "b")

    async def is_settled() -> bool:
        return await pending(admin) == []

    await until(is_settled)


async def test_what_fired_in_an_outage_comes_of_both_streams(bare: Stack) -> None:
    """S-8: turns of both are read before anything fires."""
    admin = await bare.bus("admin")
    await commit(admin, WORKER, schedule(WORKER, "_call", after(-5), kind="deadline"))
    await commit(admin, PARENT, schedule(PARENT, "_child-1f", after(-5), kind="deadline"))
    await bare.start("scheduler")
    await until_fired(admin, WORKER, "_call")
    await until_fired(admin, PARENT, "_child-1f")


def waits_for_child() -> dict[str, Any]:
    task = Task(tool="spawn_worker", title="t", due_at=after(0.5), generation=1, kind="worker")
    return {"tasks": {"1f": task}}


@pytest.mark.parametrize(
    ("timer", "waits"),
    [
        ("_child-1f", waits_for_child),
        ("_pause", lambda: {"pause": Pause(generation=1, due_at=after(0.5))}),
        ("_digest", lambda: {"digest": Digest(generation=1, due_at=after(0.5), entries={})}),
    ],
)
async def test_a_deadline_is_made_again_after_a_restore(
    bare: Stack, timer: str, waits: Callable[[], dict[str, Any]]
) -> None:
    """X-9: TIMERS is of before, and the session waits for it, with no loop open."""
    admin = await bare.bus("admin")
    deadline = schedule(PARENT, timer, after(0.5), kind="deadline")
    turn = turn_of(PARENT, [deadline])
    state = msgspec.structs.replace(turn.state, **waits())
    data = contracts.encode(msgspec.structs.replace(turn, state=state))
    headers = {"Vigil-Effects": "t", trace.HEADER: trace.new()}
    await bare.start("scheduler")
    await admin.publish(PARENT.turn, data, headers)
    await admin.publish(WORKER.turn, contracts.encode(turn_of(WORKER, [])))

    async def is_stored() -> bool:
        return len(await pending(admin)) == 1

    await until(is_stored)
    await bare.stop("scheduler")
    await admin.api("STREAM.PURGE.TIMERS", {})
    await rearm.request(admin)
    await bare.start("scheduler")
    await until_fired(admin, PARENT, timer)


async def test_a_turn_of_a_conversation_in_the_stream_of_the_cortex_is_buried(bare: Stack) -> None:
    """X-6: what only somebody with a credential for the bus can store."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    effects = [schedule(PARENT, "a", after(0.1))]
    data = contracts.encode(turn_of(PARENT, effects))
    await admin.publish("system.vigil.ann.t1.turn", data, {"Vigil-Effects": "t"})

    async def is_buried() -> bool:
        letters = await admin.read("DEAD", [PARENT.dead("scheduler")])
        return [decode_dead_letter(m.data).stream for m in letters] == ["SYSTEM"]

    await until(is_buried)
    assert await pending(admin) == []
