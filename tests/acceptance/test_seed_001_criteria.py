"""Seed 001's success criteria and the requirements that no scenario of it shows."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.agent import DONE, ask, follow_up, tell
from tests.support.delivery import redeliver
from tests.support.world import (
    Person,
    World,
    assert_folded_once_in_order,
    running_world,
)
from vigil.bus.bus import Message
from vigil.clock import SystemClock
from vigil.contracts import AGENT_FOLLOW_UP, SendMessage
from vigil.observe import trace


async def many(world: World, count: int) -> list[Person]:
    """Return people with a socket each, all with the same agent."""
    keys = [f"user{n}:vigil:t" for n in range(count)]
    return list(await asyncio.gather(*(world.person(key) for key in keys)))


# ---------------------------------------------------------------- SC-001 to SC-003


async def test_sc_001_follow_ups_of_100_sessions_are_in_hand_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC-001: from due to the message on the client's socket < 1 s, none early (S-8).

    The median is checked, as below: all hundred are due within the second that is allowed.
    """
    async with running_world(tmp_path, monkeypatch, SystemClock()) as world:
        people = await many(world, 100)
        chance = random.Random(1)
        delays = [chance.uniform(2.0, 3.0) for _ in people]
        await asyncio.gather(
            *(
                p.say(ask(follow_up("a", s, reason="hi")))
                for p, s in zip(people, delays, strict=True)
            )
        )
        late_s = []
        for person in people:
            assert await person.until_frames(2) == [DONE, "hi"]
            due_at = person.fired[0].payload.fire_at
            late_s.append((person.frames[1]["arrived_at"] - due_at).total_seconds())
    assert min(late_s) >= 0
    assert statistics.median(late_s) < 1.0, sorted(late_s)


async def test_sc_002_a_message_voids_follow_ups_within_100_ms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC-002: from the message in the log to the turn that voids; 100 % of them void (S-6).

    By the broker's own clock; half of the sessions are open at that moment, half are not. The
    median is checked, which a busy machine doesn't move; `make bench` measures the p99.
    """
    took_ms: list[float] = []
    sections = {"idle_release_s": 0.1}
    async with running_world(tmp_path, monkeypatch, SystemClock(), sessions=sections) as world:
        people = await many(world, 40)
        asks = ask(*(follow_up(str(n), 600, "x") for n in range(5)))
        await asyncio.gather(*(person.say(asks) for person in people))
        await world.at_rest()
        await asyncio.gather(*(person.until_released() for person in people))
        for number, person in enumerate(people):
            if number % 2:
                await person.exchange(asks)  # which opens the session
            assert len(await person.timers()) == 5
            seq = await person.say("hello")
            assert await person.timers() == {}, "void for everyone who asks, at once"
            await person.talk.ended(seq)
            took_ms.append(_void_ms(person, seq))
        assert [p.talk.notes.count("void") for p in people] == [5, 10] * 20
    assert statistics.median(took_ms) < 100, sorted(took_ms)


def _void_ms(person: Person, seq: int) -> float:
    """Return how long after the message `seq` the turn was stored that folded it."""
    message = next(m for m in person.talk.log if m.seq == seq)
    turns = [m for m in person.talk.log if person.talk.key.is_turn(m.subject)]
    stored: Message = next(
        m for m, turn in zip(turns, person.talk.turns, strict=True) if turn.state.position >= seq
    )
    return (stored.stored_at - message.stored_at).total_seconds() * 1000


async def test_sc_003_cap_and_cooldown_hold_with_100_percent_accuracy(world: World) -> None:
    """SC-003: follow-ups at random times in ten sessions, and people who write in between.

    What is said is exactly what the rule allows: no violation, and nothing blocked wrongly (S-7).
    """
    chance = random.Random(3)
    people = await many(world, 10)
    expected: dict[str, list[str]] = {person.key: [] for person in people}
    for _ in range(2):
        for person in people:
            # Multiples of 5 s, so that the cooldown's very edge is met often.
            plan = sorted(chance.sample(range(5, 91, 5), 6))
            calls = [follow_up(str(second), second, f"at {second}") for second in plan]
            await person.say(ask(*calls))
            expected[person.key] += _allowed(plan)
        await world.at_rest()
        for _ in range(18):
            await world.advance(5)
    assert {person.key: person.followed_up for person in people} == expected
    notes = {note for person in people for note in person.talk.notes}
    assert {"blocked_cap", "blocked_cooldown"} <= notes


def _allowed(plan: Sequence[int]) -> list[str]:
    """Return what may be said, by the rule alone: cap 3, at least 15 s apart."""
    said: list[int] = []
    for second in plan:
        if len(said) < 3 and (not said or second - said[-1] >= 15):
            said.append(second)
    return [f"at {second}" for second in said]


# ---------------------------------------------------------------- SC-004 to SC-008


async def test_sc_004_events_are_processed_in_strict_order(brisk: World) -> None:
    """SC-004: people who don't wait for answers, and timers among their messages (S-1)."""
    people = await many(brisk, 10)
    for person in people:
        await person.say(ask(*(follow_up(f"k{n}", n, f"k{n}", keep=True) for n in range(1, 4))))
    await brisk.at_rest()

    async def chatter(person: Person) -> None:
        for n in range(10):
            await person.say(f"m{n}")

    async with asyncio.TaskGroup() as group:
        for person in people:
            group.create_task(chatter(person))
        for _ in range(3):
            await brisk.advance(1)
    await brisk.at_rest()
    for person in people:
        assert_folded_once_in_order(person)
        answers = [text for text in person.talk.texts if text.startswith("re:")]
        assert answers == [f"re: m{n}" for n in range(10)]
        assert person.followed_up == ["k1", "k2", "k3"]


async def test_sc_005_100_sessions_at_once_do_not_interfere(brisk: World) -> None:
    """SC-005: a canary in everything a session says; it turns up in that session only (S-1, S-6).

    Looked for in the log, on the sockets and in all that the model was shown.
    """
    people = await many(brisk, 100)

    def canary(person: Person) -> str:
        return f"canary-{person.key.partition(':')[0]}-"

    async def converse(person: Person) -> None:
        mark = canary(person)
        await person.say(f"hello {mark}")
        await person.say(ask(follow_up("a", 30, f"fixed {mark}"), follow_up("b", 30, reason=mark)))

    await asyncio.gather(*(converse(person) for person in people))
    await brisk.at_rest()
    writers = people[::2]
    await asyncio.gather(*(person.say(f"wait {canary(person)}") for person in writers))
    await brisk.advance(30)
    for person in people:
        mark = canary(person)
        rest = ["re: wait " + mark] if person in writers else ["fixed " + mark, mark]
        expected = ["re: hello " + mark, DONE, *rest]
        assert person.talk.texts == expected
        assert await person.until_frames(len(expected)) == expected
        records = b"".join(message.data for message in person.talk.log)
        assert records.count(b"canary-") == records.count(mark.encode()) > 0
    marks = {person.key: canary(person) for person in people}
    for request in brisk.agent.requests:
        seen = str(request.rows) + str(request.situation)
        assert seen.count("canary-") == seen.count(marks[request.session_key])


async def test_sc_007_what_a_timer_causes_is_tagged_and_nothing_else_is(brisk: World) -> None:
    """SC-007: fixed texts, thoughts, messages sent on the way, reminders (S-9)."""
    ann = await brisk.person()
    chained = ask(tell("first this"), follow_up("c", 30, "chained"))
    calls = [tell("at once"), follow_up("a", 30, "fixed"), follow_up("b", 40, reason=chained),
             follow_up("k", 80, "reminder", keep=True)]  # fmt: skip
    await ann.exchange(ask(*calls))
    await ann.exchange("hello")
    await ann.exchange(ask(*calls[:3]))
    for _ in range(3):
        await brisk.advance(40)
    tagged = {text for text in ann.talk.texts if text not in ("at once", DONE, "re: hello")}
    assert {"fixed", "first this", "reminder"} <= tagged
    timer_events = {event.id for event in ann.fired}
    for line in await ann.transcript():
        is_of_timer = line["caused_by"] in timer_events
        assert line.get("tag") == (AGENT_FOLLOW_UP if is_of_timer else None), line


async def test_sc_008_no_retry_has_a_second_effect(world: World) -> None:
    """SC-008: messages, timer events and turns that come again change nothing (S-5)."""
    ann = await world.person()
    ask_once = ask(follow_up("a", 30, "once"), tell("on the way"))
    first = await ann.say(ask_once, idempotency_key="k1")
    await world.at_rest()
    assert await ann.say(ask_once, idempotency_key="k1") == first
    # The same event past all that dedupes it at the door: another place in the log, same id.
    event = next(m for m in ann.talk.log if m.seq == first)
    await world.admin.publish(event.subject, event.data, {trace.HEADER: trace.new()})
    await world.advance(30)
    fired = next(m for m in ann.talk.log if m.subject == ann.talk.key.in_event("timer"))
    await world.admin.publish(fired.subject, fired.data, {trace.HEADER: trace.new()})
    await world.at_rest()
    await world.stack.stop("delivery")
    await redeliver(world.admin, [1])
    await world.stack.start("delivery")
    await world.advance(60)
    assert ann.talk.texts == ["on the way", DONE, "once"]
    sends = [e.id for t in ann.talk.turns for e in t.effects if isinstance(e, SendMessage)]
    assert sorted(sends) == sorted(said.id for said in ann.talk.said)
    assert {"repeat", "stale_timer"} <= set(ann.talk.notes)
