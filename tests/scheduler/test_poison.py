"""What can't be read: dead-lettered with its cause, and the rest goes on."""

from __future__ import annotations

from tests.support.stack import Stack
from tests.support.timers import (
    after,
    commit,
    pending,
    schedule,
    session,
    turn_of,
    unread_turns,
    until,
    until_fired,
    until_settled,
)
from vigil import contracts
from vigil.bus.bus import Bus
from vigil.contracts import DeadLetter, TimerRecord, decode_dead_letter

KEY = session()


async def letters(admin: Bus) -> list[DeadLetter]:
    return [decode_dead_letter(m.data) for m in await admin.read("DEAD", ["dead.scheduler.>"])]


async def until_letters(admin: Bus, count: int) -> list[DeadLetter]:
    async def enough() -> bool:
        return len(await letters(admin)) >= count

    await until(enough)
    return await letters(admin)


async def test_a_poison_turn_is_dead_lettered_and_the_session_goes_on(bare: Stack) -> None:
    """S-8: bytes that are no turn, a turn of another session, and one from the future."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    headers = {"Vigil-Effects": "t"}
    foreign = contracts.encode(turn_of(session("t2"), []))
    for data in (b"\xff\x00{", foreign, b'{"v": 99}'):
        await admin.publish(KEY.turn, data, headers)
    await commit(admin, KEY, schedule(KEY, "a", after(0.2)))
    await until_fired(admin, 1)
    found = await until_letters(admin, 3)
    assert {(one.service, one.stream, one.subject) for one in found} == {
        ("scheduler", "SESSIONS", KEY.turn)
    }
    assert found[0].data == b"\xff\x00{"
    assert "another" not in found[1].cause
    assert "version 99" in found[2].cause
    assert await unread_turns(admin) == 0


async def test_a_poison_that_is_too_large_for_a_letter_is_cut(bare: Stack) -> None:
    """S-8: in base64 it would exceed the broker's limit, and be tried for ever."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    await admin.publish(KEY.turn, b"x" * 1_000_000, {"Vigil-Effects": "t"})
    (letter,) = await until_letters(admin, 1)
    assert letter.data == b"x" * (512 * 1024)


async def test_a_turn_without_a_session_is_skipped(bare: Stack) -> None:
    """S-2: a subject with a literal wildcard, which the broker stores, reaches no session."""
    await bare.start("scheduler")
    admin = await bare.bus("admin")
    data = contracts.encode(turn_of(KEY, [schedule(KEY, "a", after(0))]))
    await admin.publish("session.vigil.an*n.t1.turn", data, {"Vigil-Effects": "t"})
    await commit(admin, KEY, schedule(KEY, "b", after(0.2)))
    (event,) = await until_fired(admin, 1)
    assert event.payload.timer_id == "b"

    async def acknowledged() -> bool:
        return await unread_turns(admin) == 0

    await until(acknowledged)
    assert await letters(admin) == []


async def test_poison_in_timers_is_removed_and_hides_nothing(bare: Stack) -> None:
    """S-8: found by the scan, or as a due message; a wildcard in it removes nobody else's."""
    admin = await bare.bus("admin")
    record = TimerRecord(
        session_key=str(KEY), timer_id="a", generation=1, fire_at=after(60), kind="follow_up",
        caused_by="test",
    )  # fmt: skip
    await admin.publish("timer.session.vigil.ann.t1.x", b"garbage")
    await admin.publish(KEY.timer("b", 1), contracts.encode(record))
    await admin.publish(KEY.timer("a", 1), contracts.encode(record))
    await bare.start("scheduler")
    await until_letters(admin, 2)
    await admin.publish("due.session.vigil.ann.t1.>", b"garbage")
    await until_letters(admin, 3)

    async def only_the_good_one() -> bool:
        return [m.subject for m in await pending(admin)] == [KEY.timer("a", 1)]

    await until(only_the_good_one)
    await commit(admin, KEY, schedule(KEY, "a", after(0.1)))
    await until_fired(admin, 1)
    await until_settled(admin)
    assert bare.contexts["scheduler"].bus.violations == []
