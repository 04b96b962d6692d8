"""The pause, and the policy at a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.stack import Stack, running_stack
from tests.support.timers import (
    after,
    cancel,
    commit,
    fired,
    now,
    pending,
    schedule,
    session,
    unread_turns,
    until,
    until_fired,
    until_settled,
)
from vigil.bus.bus import Bus
from vigil.contracts import Control, decode_event
from vigil.settings import switches

KEY = session()


async def until_broker_fired(admin: Bus, count: int) -> None:
    """Wait until so many messages lie under ``due.``, and all of them were seen once."""

    async def all_seen() -> bool:
        info = await admin.api("CONSUMER.INFO.TIMERS.scheduler-due", {})
        lying = [m for m in await pending(admin) if m.subject.startswith("due.")]
        return len(lying) == count and info["num_pending"] == 0

    await until(all_seen)


async def test_a_pause_holds_follow_ups_and_lets_deadlines_pass(bare: Stack) -> None:
    """S-11: paused, follow-ups wait, beyond the broker's own firing; resumed, in due order."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await switches.pause(admin, at=now(), by="test")
    start = now()
    await commit(
        admin, KEY,
        schedule(KEY, "second", after(0.6, start)),
        schedule(KEY, "first", after(0.5, start)),
        schedule(KEY, "deadline", after(0.55, start), kind="deadline"),
    )  # fmt: skip
    events = await until_fired(admin, 1)
    assert [e.payload.timer_id for e in events] == ["deadline"]
    await until_broker_fired(admin, 2)
    assert [e.payload.timer_id for e in await fired(admin)] == ["deadline"]
    await switches.resume(admin)
    events = await until_fired(admin, 3)
    assert [e.payload.timer_id for e in events] == ["deadline", "first", "second"]
    await until_settled(admin)
    assert bare.contexts["scheduler"].bus.violations == []


async def test_a_follow_up_voided_during_a_pause_never_fires(bare: Stack) -> None:
    """S-6, S-11: also if the broker has fired it by itself meanwhile."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await switches.pause(admin, at=now(), by="test")
    await commit(admin, KEY, schedule(KEY, "void", after(0.1)), schedule(KEY, "b", after(0.2)))
    await until_broker_fired(admin, 2)
    await commit(admin, KEY, cancel(KEY, "void"))

    async def cancelled() -> bool:
        return await unread_turns(admin) == 0 and len(await pending(admin)) == 1

    await until(cancelled)
    await switches.resume(admin)
    await until_fired(admin, 1)
    await until_settled(admin)
    assert [e.payload.timer_id for e in await fired(admin)] == ["b"]


async def test_a_pause_survives_a_restart_and_the_order_survives_the_pause(bare: Stack) -> None:
    """S-8, S-11: paused, restarted, resumed: nothing came meanwhile, then all in due order."""
    admin = await bare.bus("admin")
    await switches.pause(admin, at=now(), by="test")
    await bare.start("scheduler")
    start = now()
    timers = [schedule(KEY, f"t{n}", after(0.5 - n / 10, start)) for n in range(5)]
    await commit(admin, KEY, *timers)

    async def stored() -> bool:
        return await unread_turns(admin) == 0 and now() > after(0.6, start)

    await until(stored)
    await bare.stop("scheduler")
    await bare.start("scheduler")
    assert await fired(admin) == []
    await switches.resume(admin)
    events = await until_fired(admin, 5)
    assert [e.payload.timer_id for e in events] == [f"t{n}" for n in reversed(range(5))]


async def test_switching_back_and_forth_keeps_the_order(bare: Stack) -> None:
    """S-8, S-11: a pause in the middle of a burst lets no timer overtake another."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    fire_at = after(1.0)
    names = [f"t{n:03}" for n in range(100)]
    for part in range(0, 100, 20):
        timers = [schedule(KEY, name, fire_at) for name in names[part : part + 20]]
        await commit(admin, KEY, *timers)
    await until_fired(admin, 1)
    for _ in range(4):
        await switches.pause(admin, at=now(), by="test")
        await asyncio.sleep(0)
        await switches.resume(admin)
    events = await until_fired(admin, 100)
    assert [e.payload.timer_id for e in events] == names


async def controls(admin: Bus) -> list[Control]:
    messages = await admin.read("SESSIONS", ["session.*.*.*.in.control"])
    return [e for e in (decode_event(m.data) for m in messages) if isinstance(e, Control)]


async def test_restart_policy_clear_voids_before_anything_fires(tmp_path: Path) -> None:
    """S-8: each session with follow-ups gets one control event, first; deadlines don't count."""
    policy = {"restart_policy": "clear"}
    async with running_stack(tmp_path, services=(), autonomy=policy) as stack:
        admin = await stack.bus("admin")
        one, two, other = session("one"), session("two"), session("other")
        await commit(admin, other, schedule(other, "before", after(0)))
        await stack.start("scheduler")
        await until_fired(admin, 1)
        assert [c.session_key for c in await controls(admin)] == [str(other)]
        # Some stored, some only decided when the second one starts.
        await commit(admin, one, schedule(one, "a", after(0.6)), schedule(one, "b", after(60)))
        await commit(admin, other, schedule(other, "a", after(0.6), kind="deadline"))

        async def stored() -> bool:
            return await unread_turns(admin) == 0

        await until(stored)
        await stack.stop("scheduler")
        await commit(admin, two, schedule(two, "a", after(60)))
        await stack.start("scheduler")
        await until_fired(admin, 3)
        found = (await controls(admin))[1:]
        assert sorted(c.session_key for c in found) == [str(one), str(two)]
        assert {(c.payload.op, c.payload.reason) for c in found} == {
            ("clear_follow_ups", "restart")
        }
        cleared_at, fired_at = [
            (await admin.read("SESSIONS", [one.in_event(kind)]))[0].seq
            for kind in ("control", "timer")
        ]
        assert cleared_at < fired_at


async def test_restart_policy_keep_voids_nothing(bare: Stack) -> None:
    """S-8: by default timers survive a restart."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await commit(admin, KEY, schedule(KEY, "a", after(1.0)))

    async def stored() -> bool:
        return await unread_turns(admin) == 0

    await until(stored)
    await bare.stop("scheduler")
    await bare.start("scheduler")
    await until_fired(admin, 1)
    assert await controls(admin) == []
