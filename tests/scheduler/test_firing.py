"""Timers on the real broker: on time, never early, in order, cancelled, however far away."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.stack import Stack, running_stack
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
from tests.support.world import StoppedClock
from vigil.bus.bus import Bus
from vigil.contracts import decode_timer
from vigil.observe import trace
from vigil.topology import DAY_S

KEY = session()


async def until_pending(admin: Bus, count: int) -> None:
    async def stored() -> bool:
        return await unread_turns(admin) == 0 and len(await pending(admin)) == count

    await until(stored)


async def test_a_timer_never_fires_early(bare: Stack) -> None:
    """S-8: the event names what it came from. How late it is, `make bench` measures."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    timers = [schedule(KEY, f"t{n}", after(0.3 + n * 0.037)) for n in range(20)]
    await commit(admin, KEY, *timers)
    await until_fired(admin, 20)
    for event, message in await fired_with_messages(admin):
        assert message.stored_at >= event.payload.fire_at
        assert event.session_key == str(KEY)
        assert event.caused_by in {t.id for t in timers}
        assert trace.HEADER in message.headers
    await until_settled(admin)
    assert bare.contexts["scheduler"].bus.violations == []


async def test_timers_due_together_come_by_id(bare: Stack) -> None:
    """S-8: several due fire in order of fire_at, then id, however they were published."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    fire_at = after(1.5)  # by then all are published, on a slow machine, too
    names = [f"t{n:02}" for n in range(30)]
    for name in random.Random(7).sample(names, 30):
        await commit(admin, KEY, schedule(KEY, name, fire_at))
    events = await until_fired(admin, 30)
    assert [e.payload.timer_id for e in events] == names


async def test_a_time_in_the_past_fires_at_once(bare: Stack) -> None:
    """S-8: a time in the past fires at once, in due order, even from the year 1."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await commit(
        admin, KEY,
        schedule(KEY, "late", after(-60)),
        schedule(KEY, "ancient", datetime(1, 1, 1, tzinfo=UTC)),
    )  # fmt: skip
    events = await until_fired(admin, 2)
    assert {e.payload.timer_id for e in events} == {"late", "ancient"}
    await until_settled(admin)


async def test_any_duration_is_accepted_and_none_of_them_fires_now(bare: Stack) -> None:
    """S-8: any duration. 2262 is past the broker's own clock and would fire at once."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    years = (2027, 2126, 2262, 2300, 9999)
    await commit(
        admin, KEY, *(schedule(KEY, str(y), datetime(y, 12, 31, tzinfo=UTC)) for y in years)
    )
    await until_pending(admin, len(years))
    await commit(admin, KEY, schedule(KEY, "now", after(0.3), generation=2))
    await until_fired(admin, 1)
    # The broker's tick has passed by now, and what it fires lies under "due.".
    lying = await pending(admin)
    assert sorted(decode_timer(m.data).timer_id for m in lying) == sorted(map(str, years))
    assert all(m.subject.startswith("timer.") for m in lying)
    assert [e.payload.timer_id for e in await fired(admin)] == ["now"]


async def test_equal_timers_of_two_sessions_both_fire(bare: Stack) -> None:
    """S-8: timers are keyed by (session_key, timer_id)."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    keys = [session("t1"), session("t2"), session("t1", user="bob")]
    for key in keys:
        await commit(admin, key, schedule(key, "check", after(0.2)))
    events = await until_fired(admin, 3)
    assert sorted(e.session_key for e in events) == sorted(map(str, keys))


async def test_a_replaced_timer_fires_only_as_the_new_one(bare: Stack) -> None:
    """S-8: scheduling the same id again replaces it."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await commit(admin, KEY, schedule(KEY, "check", after(0.6)))
    await commit(
        admin, KEY,
        cancel(KEY, "check", generation=1),
        schedule(KEY, "check", after(0.9), generation=2),
    )  # fmt: skip
    events = await until_fired(admin, 1)
    await until_settled(admin)
    assert [e.payload.generation for e in events] == [2]
    assert [e.payload.generation for e in await fired(admin)] == [2]


async def test_a_cancelled_timer_never_fires(bare: Stack) -> None:
    """S-6: what a turn voids is gone from the heap and from the broker."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    timers = [schedule(KEY, f"t{n}", after(1.0)) for n in range(50)]
    await commit(admin, KEY, *timers, schedule(KEY, "kept", after(1.2)))
    await until_pending(admin, 51)
    await commit(admin, KEY, *(cancel(KEY, f"t{n}") for n in range(50)))
    await until_pending(admin, 1)
    await until_fired(admin, 1)
    await until_settled(admin)
    assert [e.payload.timer_id for e in await fired(admin)] == ["kept"]


async def test_the_turns_of_a_session_are_carried_out_in_order(bare: Stack) -> None:
    """S-6: a backlog of schedules, each with its cancel behind it: none of them is left."""
    admin = await bare.bus("admin")
    keys = [session(f"t{n}") for n in range(50)]
    for key in keys:
        await commit(admin, key, schedule(key, "a", after(1.5)))
        await commit(admin, key, cancel(key, "a"))
    await commit(admin, KEY, schedule(KEY, "kept", after(1.6)))
    await bare.start("scheduler")
    await until_fired(admin, 1)
    await until_settled(admin)
    assert [e.payload.timer_id for e in await fired(admin)] == ["kept"]


async def test_a_cancel_at_the_due_moment_fires_once_or_not_at_all(bare: Stack) -> None:
    """S-6, S-8: 200 races; each ends fired or cancelled, none twice, none left behind."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    fire_at = after(3.0)
    keys = [session(f"race-{n}") for n in range(200)]
    await asyncio.gather(*(commit(admin, key, schedule(key, "race", fire_at)) for key in keys))
    await until_pending(admin, 200)
    chance = random.Random(3)

    async def race(n: int) -> None:
        key = keys[n]
        aim = fire_at + timedelta(milliseconds=chance.uniform(-2000, 300))
        await asyncio.sleep(max((aim - now()).total_seconds(), 0))
        await commit(admin, key, cancel(key, "race"))

    await asyncio.gather(*(race(n) for n in range(200)))
    await until_settled(admin)
    sessions = [e.session_key for e in await fired(admin)]
    assert len(sessions) == len(set(sessions))
    assert 0 < len(sessions) < 200


async def test_a_turn_without_timer_effects_is_only_acknowledged(bare: Stack) -> None:
    """ARCHITECTURE 4: the header tells, and the body isn't read."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await admin.publish(KEY.turn, b"not even a turn", {"Vigil-Effects": "s"})
    await admin.publish(KEY.turn, b"not even a turn")

    async def acknowledged() -> bool:
        return await unread_turns(admin) == 0

    await until(acknowledged)
    assert await admin.read("DEAD", ["dead.>"]) == []


async def test_a_jump_of_the_clock_makes_due_at_once(tmp_path: Path) -> None:
    """S-8: the wall clock is set forward, or the machine slept: nobody writes anything, and what is
    due by the new time fires without waiting for another timer's turn."""
    clock = StoppedClock()
    async with running_stack(tmp_path, ("scheduler",), clock) as stack:
        admin = await stack.bus("admin")
        in_an_hour = clock.now() + timedelta(hours=1)
        await commit(
            admin, KEY, schedule(KEY, "a", in_an_hour), schedule(KEY, "b", after(30 * DAY_S))
        )
        elsewhere = session("elsewhere")
        await commit(admin, elsewhere, schedule(elsewhere, "now", clock.now()))
        await until_fired(admin, 1, elsewhere)
        await until_pending(admin, 2)  # it has looked at the clock, and waits
        clock.move(3600)
        (event,) = await until_fired(admin, 1, KEY)
        assert event.payload.timer_id == "a"
