"""What an outage may not do: lose a timer, change the order, store an event twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from tests.chaos.processes import launched
from tests.support.pauses import pauses
from tests.support.stack import Stack
from tests.support.timers import (
    after,
    cancel,
    commit,
    fired,
    fired_with_messages,
    now,
    pending,
    schedule,
    session,
    unread_turns,
    until,
    until_fired,
    until_settled,
)
from vigil import crash, runtime, topology
from vigil.backup import rearm
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.crash import EXIT_CODE
from vigil.errors import VigilError

KEY = session()
KEPT_S = 3.5
"""A turn that is kept by who serves no more comes again after 5 s, due after less than one."""
POINTS = [
    name
    for name in crash.POINTS
    if name.startswith("scheduler.") and not name.startswith(("scheduler.task.", "scheduler.slot."))
]
"""Those of timers; tests/chaos/{test_task_kills,test_slot_kills}.py have the others."""


async def until_scheduled(admin: Bus, count: int) -> None:
    async def stored() -> bool:
        return await unread_turns(admin) == 0 and len(await pending(admin)) == count

    await until(stored)


async def lease_holder(admin: Bus) -> bytes | None:
    entry = await KeyValue(admin, "LEASES").get("scheduler")
    return None if entry is None else entry.value


async def until_active_is_one_of(admin: Bus, *contexts: runtime.Context) -> None:
    async def active() -> bool:
        return await lease_holder(admin) in {c.instance.encode() for c in contexts}

    await until(active)


async def forget_lease(admin: Bus) -> None:
    """Let the lease of a killed one run out now; that it does so by itself is shown below."""
    await KeyValue(admin, "LEASES").delete("scheduler")


async def restart_broker(stack: Stack) -> None:
    """Kill the watched broker and wait until there is another process."""
    old = stack.broker.pid
    stack.broker.kill()

    async def is_another() -> bool:
        return stack.broker.pid != old

    await until(is_another)


@pytest.mark.usefixtures("own_broker")
async def test_timers_that_came_due_in_an_outage_come_in_due_order(bare: Stack) -> None:
    """S-8: published in another order, some stored, some only decided; then the broker dies."""
    bare.broker.watch()
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    start = now()
    stored = [schedule(KEY, f"s{n}", after(1.0 - n * 0.1, start)) for n in range(5)]
    await commit(admin, KEY, *stored)
    await until_scheduled(admin, 5)
    await bare.stop("scheduler")
    for n in range(5):
        effect = schedule(KEY, f"d{n}", after(0.95 - n * 0.1, start), generation=2)
        await commit(admin, KEY, effect)
    await restart_broker(bare)

    async def all_due() -> bool:
        return now() > after(1.1, start) and await fired(admin) == []

    await until(all_due)
    await bare.start("scheduler")
    events = await until_fired(admin, 10)
    due = [e.payload.fire_at for e in events]
    assert due == sorted(due)
    assert len({e.id for e in events}) == 10
    await until_settled(admin)
    assert len(await fired(admin)) == 10


async def test_what_the_broker_fired_by_itself_comes_in_due_order(bare: Stack) -> None:
    """S-8: the broker fires in the order of publishing; the scheduler puts that right."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    start = now()
    await commit(admin, KEY, *(schedule(KEY, f"t{n}", after(1 - n / 10, start)) for n in range(6)))
    await until_scheduled(admin, 6)
    await bare.stop("scheduler")

    async def fired_by_broker() -> bool:
        return [m.subject.split(".")[0] for m in await pending(admin)] == ["due"] * 6

    await until(fired_by_broker)
    await bare.start("scheduler")
    events = await until_fired(admin, 6)
    assert [e.payload.timer_id for e in events] == [f"t{n}" for n in reversed(range(6))]
    await until_settled(admin)
    assert len(await fired(admin)) == 6


@pytest.mark.usefixtures("own_broker")
async def test_a_running_scheduler_survives_the_broker(bare: Stack) -> None:
    """S-8: due while the broker is away: stored when it's back, once, in order."""
    bare.broker.watch()
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    keys = [session(f"t{n}") for n in range(10)]
    start = now()
    for key in keys:
        timers = [schedule(key, f"t{n}", after(0.5 + n / 20, start)) for n in range(10)]
        await commit(admin, key, *timers)
    await until_scheduled(admin, 100)
    pid = bare.broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)

    async def some_due() -> bool:
        return now() > after(0.8, start)

    await until(some_due)
    await restart_broker(bare)
    await until_fired(admin, 100, timeout_s=20)
    await until_settled(admin, timeout_s=20)
    for key in keys:
        assert [e.payload.timer_id for e in await fired(admin, key)] == [f"t{n}" for n in range(10)]


@pytest.mark.usefixtures("own_broker")
async def test_broker_restarts_under_load_lose_nothing(bare: Stack) -> None:
    """S-8: three kills of the broker while turns and timers flow; each timer is stored once."""
    bare.broker.watch()
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    committed = 0

    async def talk() -> None:
        nonlocal committed
        for n in range(150):
            key = session(f"t{n % 10}")
            effect = schedule(key, f"t{n}", after(0.1))
            pause_s = pauses()
            while True:
                try:
                    await commit(admin, key, effect)
                    break
                except VigilError:
                    await asyncio.sleep(next(pause_s))
            committed += 1

    talking = asyncio.create_task(talk())
    for share in (20, 60, 100):

        async def come_far(share: int = share) -> bool:
            return committed >= share

        await until(come_far, timeout_s=20)
        await restart_broker(bare)
    await talking
    await until_settled(admin, timeout_s=20)
    names = [(e.session_key, e.payload.timer_id) for e in await fired(admin)]
    assert len(set(names)) == 150
    assert len(names) == 150


async def test_a_turn_in_dead_hands_is_waited_for(bare: Stack) -> None:
    """S-8: its timer is due first; what was stored after it is known at once, and due, too."""
    admin = await bare.bus("admin")
    hands = await admin.pull(topology.SCHEDULER_TURNS)
    start = now()
    await commit(admin, KEY, schedule(KEY, "a", after(0.1, start)))
    held = await anext(hands)
    await hands.close()
    await commit(admin, KEY, schedule(KEY, "b", after(0.2, start)))
    await bare.start("scheduler")

    async def is_b_long_due() -> bool:
        return now() > after(1.5, start) and len(await pending(admin)) == 1

    await until(is_b_long_due)
    assert await fired(admin) == []
    await admin.nak(held, 0)
    assert [e.payload.timer_id for e in await until_fired(admin, 2)] == ["a", "b"]


async def test_a_turn_in_dead_hands_that_was_cancelled_meanwhile_fires_nothing(bare: Stack) -> None:
    """S-8: the cancelling turn is carried out before it; one that plans it anew counts."""
    admin = await bare.bus("admin")
    hands = await admin.pull(topology.SCHEDULER_TURNS)
    start = now()
    await commit(admin, KEY, schedule(KEY, "a", after(0.1, start)))
    await commit(admin, KEY, schedule(KEY, "c", after(0.1, start)))
    held = [await anext(hands), await anext(hands)]
    await hands.close()
    await commit(admin, KEY, cancel(KEY, "a"), cancel(KEY, "c"))
    await commit(admin, KEY, schedule(KEY, "c", after(0.3, start)))
    await commit(admin, KEY, schedule(KEY, "b", after(0.2, start)))
    await bare.start("scheduler")

    async def are_others_taken() -> bool:
        return len(await pending(admin)) == 2

    await until(are_others_taken)
    for message in held:
        await admin.nak(message, 0)
    await until_settled(admin)
    events = {e.payload.timer_id: e.payload.fire_at for e in await fired(admin)}
    assert events == {"b": after(0.2, start), "c": after(0.3, start)}


async def test_a_later_turn_that_cant_be_read_says_nothing_of_an_earlier_one(bare: Stack) -> None:
    """S-8: the one that comes again is carried out, and only the unreadable one is buried."""
    admin = await bare.bus("admin")
    hands = await admin.pull(topology.SCHEDULER_TURNS)
    await commit(admin, KEY, schedule(KEY, "a", after(0.1)))
    held = await anext(hands)
    await hands.close()
    await admin.publish(KEY.turn_for("t"), b'{"schedule_timer": broken')
    await bare.start("scheduler")
    await admin.nak(held, 0)
    (event,) = await until_fired(admin, 1)
    assert event.payload.timer_id == "a"


async def test_a_standby_takes_over(bare: Stack) -> None:
    """S-8: when the active one is gone without a word, once its lease has run out."""
    environment = await subprocess_environment(bare)
    process = await launched("services.scheduler", environment)
    admin = await bare.bus("admin")

    async def held() -> bool:
        return await lease_holder(admin) is not None

    await until(held)
    await bare.start("scheduler")
    standby = bare.contexts["scheduler"]
    assert standby.ready.is_set()
    assert await lease_holder(admin) != standby.instance.encode()
    await commit(admin, KEY, schedule(KEY, "a", after(1.0)), schedule(KEY, "b", after(30.0)))
    await until_scheduled(admin, 2)
    process.kill()
    await process.wait()
    await until_active_is_one_of(admin, standby)
    (event,) = await until_fired(admin, 1)
    assert event.payload.timer_id == "a"
    assert len(await pending(admin)) >= 1


async def test_a_lost_lease_ends_the_term_and_another_one_serves(bare: Stack) -> None:
    """S-8: whoever finds the lease taken is active no more, and keeps no turn to itself."""
    await bare.start("scheduler", "scheduler:2")
    admin = await bare.bus("admin")
    first, second = bare.contexts["scheduler"], bare.contexts["scheduler:2"]
    await until_active_is_one_of(admin, first)
    leases = KeyValue(admin, "LEASES")
    taken = await leases.put("scheduler", second.instance.encode())
    # The first one finds out at its next renewal; the entry was not the second one's own, so
    # one of them takes it when it has run out.

    async def gone() -> bool:
        return (await leases.last("scheduler"))[1] != taken  # it may be taken again at once

    await until(gone)
    await until_active_is_one_of(admin, first, second)
    # What the first one asked the broker for is still open there: it must give that back.
    timers = [schedule(KEY, f"t{n:02}", after(0.5 + n / 50)) for n in range(20)]
    await asyncio.gather(*(commit(admin, KEY, timer) for timer in timers))
    await until_fired(admin, 20)
    for event, message in await fired_with_messages(admin):
        assert (message.stored_at - event.payload.fire_at).total_seconds() < KEPT_S
    await until_settled(admin)
    assert len(await fired(admin)) == 20
    assert first.bus.violations == second.bus.violations == []


async def subprocess_environment(stack: Stack, **more: str) -> dict[str, str]:
    home = str(stack.settings.home)
    names = ("PATH", "HOME", "LANG")
    base = {name: os.environ[name] for name in names if name in os.environ}
    return base | {"VIGIL_HOME": home, "NATS_URL": stack.broker.url} | more


@pytest.mark.usefixtures("halved_times")
@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_each_step_stores_each_event_once(bare: Stack, point: str) -> None:
    """S-8: killed between any two writes: every timer is in the log once, in due order."""
    admin = await bare.bus("admin")
    if point == "scheduler.due.before_ack":
        await bare.start("scheduler")
        await commit(admin, KEY, *(schedule(KEY, f"t{n}", after(0.8)) for n in range(3)))
        await until_scheduled(admin, 3)
        await bare.stop("scheduler")

        async def fired_by_broker() -> bool:
            return all(m.subject.startswith("due.") for m in await pending(admin))

        await until(fired_by_broker)
    else:
        timers = [schedule(KEY, f"t{n}", after(1.0 + n / 10)) for n in range(3)]
        await commit(admin, KEY, *timers)
    if point == "scheduler.rearm.before_done":
        await rearm.request(admin)
    environment = await subprocess_environment(bare, VIGIL_CRASH_AT=f"{point}:1")
    process = await launched("services.scheduler", environment)
    assert await asyncio.wait_for(process.wait(), 20) == EXIT_CODE
    await forget_lease(admin)
    await bare.start("scheduler")
    events = await until_fired(admin, 3, timeout_s=15)
    assert [e.payload.timer_id for e in events] == ["t0", "t1", "t2"]
    await until_settled(admin, timeout_s=15)
    assert len(await fired(admin)) == 3


async def test_stopped_between_promoting_and_removing_stores_the_event_once(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-8: cancelled with the schedule still there: the next one's repeat is dropped."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    stopped = asyncio.Event()
    real: Callable[[str], None] = crash.point

    def stop_before_removal(name: str) -> None:
        if name == "scheduler.promote.after":
            stopped.set()
            raise asyncio.CancelledError
        real(name)

    monkeypatch.setattr(crash, "point", stop_before_removal)
    await commit(admin, KEY, schedule(KEY, "a", after(0.3)))
    await stopped.wait()
    assert len(await fired(admin)) == 1
    assert len(await pending(admin)) == 1
    await bare.stop("scheduler")
    monkeypatch.setattr(crash, "point", real)
    await bare.start("scheduler")
    await until_settled(admin)
    assert len(await fired(admin)) == 1


async def test_a_cancel_decided_in_an_outage_wins_over_the_broker(bare: Stack) -> None:
    """S-6: voided while no scheduler ran, and fired by the broker meanwhile: it's dropped."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await commit(admin, KEY, schedule(KEY, "a", after(0.5)), schedule(KEY, "b", after(0.6)))
    await until_scheduled(admin, 2)
    await bare.stop("scheduler")
    await commit(admin, KEY, cancel(KEY, "a"))

    async def fired_by_broker() -> bool:
        return all(m.subject.startswith("due.") for m in await pending(admin))

    await until(fired_by_broker)
    await bare.start("scheduler")
    await until_fired(admin, 1)
    await until_settled(admin)
    assert [e.payload.timer_id for e in await fired(admin)] == ["b"]
