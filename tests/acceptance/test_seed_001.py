"""Seed 001, scenario by scenario and edge case by edge case, against everything that is real.

Real are the broker, the four services, HTTP, WebSockets; the model is an agent that does what
a message asks. The clock is stopped and moved by the tests, so 30 seconds are 30 seconds. Where
SPEC is stronger than the seed (nothing is lost in a restart) the stronger form is tested.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.agent import DONE, ask, ask_in_steps, follow_up
from tests.support.delivery import redeliver
from tests.support.world import World, assert_folded_once_in_order, running_world
from vigil.contracts import AGENT_FOLLOW_UP

BEN = "ben:vigil:t1"
ANN_2 = "ann:vigil:t2"
LATER = [("a", 30), ("b", 60), ("c", 90)]


# ---------------------------------------------------------------- US1: scheduled follow-ups


async def test_us1_1_after_30_seconds_the_agent_comes_back_unasked(world: World) -> None:
    """US1.1: a follow-up in 30 s is said after 30 s, not before, with no input (S-8)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, reason="How did it go?")))
    await world.advance(29.999)
    assert ann.talk.texts == [DONE]
    await world.advance(0.001)
    assert await ann.until_frames(2) == [DONE, "How did it go?"]
    assert [line["role"] for line in await ann.transcript()] == ["user", "assistant", "assistant"]


async def test_us1_2_the_follow_up_is_tagged_in_the_transcript(world: World) -> None:
    """US1.2: a message caused by a timer is tagged "Agent follow-up"; an answer isn't (S-9)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "Any news?")))
    await world.advance(30)
    await ann.until_frames(2)
    lines = await ann.transcript()
    assert [line.get("tag") for line in lines] == [None, None, AGENT_FOLLOW_UP]
    assert [frame.get("tag") for frame in ann.frames] == [None, AGENT_FOLLOW_UP]
    assert lines[-1]["caused_by"] == ann.fired[0].id


async def test_us1_3_timers_fire_in_chronological_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """US1.3: due together, they come in order of fire_at, then id, whatever made first (S-8)."""
    autonomy = {"cooldown_ms": 0, "max_consecutive": 10}
    async with running_world(tmp_path, monkeypatch, autonomy=autonomy) as world:
        ann = await world.person()
        delays = {"e": 30, "b": 20, "d": 30, "c": 20.001, "a": 25, "f": 10}
        await ann.exchange(ask(*(follow_up(name, s, name) for name, s in delays.items())))
        await world.advance(60)
        assert ann.followed_up == ["f", "b", "c", "a", "d", "e"]
        fire_ats = [event.payload.fire_at for event in ann.fired]
        assert fire_ats == sorted(fire_ats)


# ---------------------------------------------------------------- US2: the person writes first


async def test_us2_1_a_message_cancels_the_follow_up_for_good(world: World) -> None:
    """US2.1: due in 30 s, the person writes after 10 s: it's cancelled and never fires (S-6)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "still there?")))
    await world.advance(10)
    await ann.exchange("hello")
    await world.advance(20)
    await world.advance(86_400)
    assert ann.talk.texts == [DONE, "re: hello"]
    assert ann.fired == []
    assert "void" in ann.talk.notes


async def test_us2_2_timers_and_unsaid_effects_are_cleared_before_the_message(
    brisk: World,
) -> None:
    """US2.2: all pending timers and all sends not yet said are gone before it's processed (S-6)."""
    ann = await brisk.person()
    await ann.exchange(ask(*(follow_up(name, s, name) for name, s in LATER)))
    await brisk.stack.stop("delivery")
    await brisk.advance(30, without="delivery")
    assert ann.talk.turns[-1].outcome == "answered", "a is decided, and nobody is there to say it"
    assert set(await ann.timers()) == {"b", "c"}
    seq = await ann.say("wait")
    assert await ann.timers() == {}, "void as soon as the message is stored"
    await ann.talk.ended(seq)
    asked = next(r for r in reversed(brisk.agent.requests) if r.session_key == ann.key)
    assert asked.situation.follow_ups == {}, "cleared before the model saw the message"
    await brisk.stack.start("delivery")
    await brisk.advance(100)
    assert ann.talk.texts == [DONE, "re: wait"]
    assert [receipt.outcome for receipt in ann.talk.receipts] == ["void"]
    assert [event.payload.timer_id for event in ann.fired] == ["a"]


async def test_us2_3_after_a_cancellation_new_follow_ups_can_be_scheduled(world: World) -> None:
    """US2.3: the message that cancels one may schedule another, of the same id too (S-6, S-8)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "the old one")))
    await world.advance(10)
    await ann.exchange(ask(follow_up("a", 40, "the new one")))
    await world.advance(30)
    assert ann.followed_up == []
    await world.advance(10)
    assert ann.followed_up == ["the new one"]
    assert len(ann.fired) == 1


# ---------------------------------------------------------------- US3: hard limits


async def test_us3_1_the_fourth_message_in_a_row_is_blocked_and_noted(brisk: World) -> None:
    """US3.1: three in a row are said, the fourth is blocked with an internal note (S-7)."""
    ann = await brisk.person()
    await ann.exchange(ask(*(follow_up(str(n), 30 + n, f"m{n}") for n in range(1, 5))))
    await brisk.advance(60)
    assert ann.followed_up == ["m1", "m2", "m3"]
    blocked = ann.talk.turns[-1]
    assert blocked.outcome == "blocked"
    assert [(note.code, note.subject) for note in blocked.notes] == [("blocked_cap", "4")]


async def test_us3_2_less_than_15_seconds_after_the_last_one_is_blocked(world: World) -> None:
    """US3.2: 14.999 s after an autonomous message blocks, 15 s passes (S-7)."""
    ann = await world.person()
    delays = {"first": 30, "early": 44.999, "on time": 45}
    await ann.exchange(ask(*(follow_up(name, s, name) for name, s in delays.items())))
    await world.advance(30)
    await world.advance(14.999)
    assert ann.followed_up == ["first"]
    assert ann.talk.notes[-1] == "blocked_cooldown"
    await world.advance(0.001)
    assert ann.followed_up == ["first", "on time"]


async def test_us3_3_a_user_message_resets_the_counter(brisk: World) -> None:
    """US3.3: at the cap, the person writes: the counter is 0 and three more may come (S-7)."""
    ann = await brisk.person()
    four = ask(*(follow_up(str(n), n, f"m{n}") for n in range(1, 5)))
    await ann.exchange(four)
    await brisk.advance(30)
    assert ann.talk.turns[-1].state.counters.consecutive == 3
    await ann.exchange(four)
    assert ann.talk.turns[-1].state.counters.consecutive == 0
    await brisk.advance(30)
    assert ann.followed_up == ["m1", "m2", "m3"] * 2
    assert ann.talk.notes.count("blocked_cap") == 2


async def test_us3_4_a_blocked_message_is_dropped_and_never_retried(world: World) -> None:
    """US3.4: blocked by the cooldown, it doesn't come when that is over, nor ever (S-7)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "first"), follow_up("b", 40, "blocked")))
    await world.advance(30)
    await world.advance(10)
    assert await ann.timers() == {}
    for seconds in (5, 15, 3600):
        await world.advance(seconds)
    assert ann.talk.texts == [DONE, "first"]
    assert ann.talk.notes.count("blocked_cooldown") == 1


# ---------------------------------------------------------------- US4: failures


@pytest.mark.usefixtures("own_broker")
async def test_us4_1_timers_survive_the_restart_of_everything(brisk: World) -> None:
    """US4.1 in our stronger form: what came due meanwhile and what comes later is said (S-8)."""
    ann = await brisk.person(has_socket=False)
    await ann.exchange(ask(follow_up("a", 30, "due while down"), follow_up("b", 60, "due later")))
    await brisk.restart(away_s=30)
    await brisk.advance(0)
    assert ann.followed_up == ["due while down"]
    await brisk.advance(30)
    await brisk.at_rest()
    assert ann.followed_up == ["due while down", "due later"]
    assert len(ann.fired) == 2


@pytest.mark.usefixtures("own_broker")
async def test_us4_1_restart_policy_clear_is_what_the_seed_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """US4.1 to the letter: follow-ups are cleared on restart; reminders are kept (S-8)."""
    autonomy = {"cooldown_ms": 0, "restart_policy": "clear"}
    async with running_world(tmp_path, monkeypatch, autonomy=autonomy) as world:
        ann = await world.person(has_socket=False)
        kept = follow_up("k", 30, "as you asked", keep=True)
        await ann.exchange(ask(follow_up("a", 30, "cleared"), follow_up("b", 60, "cleared"), kept))
        await world.restart(away_s=30)
        await world.advance(60)
        assert ann.followed_up == ["as you asked"]
        assert ann.talk.notes.count("void") == 2


async def test_us4_2_a_failed_send_on_the_socket_makes_no_retry_storm(world: World) -> None:
    """US4.2: the connection breaks; the message is stored once, tried once, and waits (S-10)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "hello?")))
    await ann.until_frames(1)
    await ann.disconnect(is_abrupt=True)
    await world.advance(30)
    deliveries = await _deliveries(world)
    await world.advance(3600)
    assert ann.followed_up == ["hello?"]
    turns = len([m for m in ann.talk.log if ann.talk.key.is_turn(m.subject)])
    assert turns == len(ann.talk.turns)
    assert await _deliveries(world) == deliveries  # nothing was tried again
    await ann.connect()
    assert await ann.until_frames(2) == [DONE, "hello?"]


async def _deliveries(world: World) -> int:
    info = await world.admin.api("CONSUMER.INFO.SESSIONS.delivery-turns", {})
    count: int = info["delivered"]["consumer_seq"]
    return count


async def test_us4_3_an_executed_effect_is_skipped_when_it_comes_again(world: World) -> None:
    """US4.3: every turn is processed again by another delivery: nothing is said twice (S-5)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "once")))
    await world.advance(30)
    before = [message.seq for message in ann.talk.log]
    await world.stack.stop("delivery")
    await redeliver(world.admin, [1])
    await world.stack.start("delivery")
    await world.at_rest()
    assert [message.seq for message in ann.talk.log] == before
    assert ann.talk.texts == [DONE, "once"]
    assert await ann.until_frames(2) == [DONE, "once"]


# ---------------------------------------------------------------- US5: isolation


async def test_us5_1_each_follow_up_fires_only_in_its_own_session(world: World) -> None:
    """US5.1: two people with the same agent; each gets their own, and can't reach the other's."""
    ann, ben = await world.person(), await world.person(BEN)
    await ann.exchange(ask(follow_up("same id", 30, "for Ann")))
    await ben.exchange(ask(follow_up("same id", 30, "for Ben")))
    await world.advance(30)
    assert await ann.until_frames(2) == [DONE, "for Ann"]
    assert await ben.until_frames(2) == [DONE, "for Ben"]
    assert (await ann.http.get(f"/api/sessions/{BEN}")).status_code == 404


async def test_us5_2_timers_of_one_thread_do_not_touch_another(world: World) -> None:
    """US5.2: one person, two threads, equal timer ids: state and timers are apart (S-1)."""
    one, two = await world.person(), await world.person(ANN_2)
    await one.exchange(ask(follow_up("x", 30, "one")))
    await two.exchange(ask(follow_up("x", 60, "two")))
    before = two.talk.turns[-1].state
    await world.advance(30)
    assert (one.followed_up, two.followed_up) == (["one"], [])
    assert two.talk.turns[-1].state == before
    assert set(await two.timers()) == {"x"}
    await world.advance(30)  # 30 s after the other thread's: cap and cooldown are apart, too
    assert two.followed_up == ["two"]
    assert two.talk.turns[-1].state.counters.consecutive == 1


async def test_us5_3_a_message_clears_only_its_own_sessions_timers(world: World) -> None:
    """US5.3: a message in session 1 voids the timers of session 1 alone (S-6)."""
    people = [await world.person(key) for key in ("ann:vigil:t1", ANN_2, BEN)]
    for person in people:
        await person.exchange(ask(follow_up("x", 30, "hi")))
    await people[0].exchange("hello")
    assert [len(await person.timers()) for person in people] == [0, 1, 1]
    await world.advance(30)
    assert [person.followed_up for person in people] == [[], ["hi"], ["hi"]]


# ---------------------------------------------------------------- edge cases


async def test_edge_a_time_in_the_past_fires_at_once(brisk: World) -> None:
    """Past-scheduled timers: promoted without delay, with no need of the clock (S-8)."""
    ann = await brisk.person()
    await ann.exchange(ask(follow_up("a", -86_400, "late"), follow_up("b", 0, "now")))
    await brisk.at_rest()
    assert await ann.until_frames(3) == [DONE, "late", "now"]


async def test_edge_a_message_while_a_timer_is_processed_is_taken_one_at_a_time(
    world: World,
) -> None:
    """Concurrent processing: the person writes while the agent thinks about its follow-up.

    The follow-up is void, the message is answered, each event is folded once, in order (S-1).
    """
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, reason="slow thought")))
    world.agent.held.add("slow thought")
    async with asyncio.TaskGroup() as group:
        group.create_task(world.advance(30))
        await world.agent.thinking.wait()
        seq = await ann.say("I am here")
        await ann.talk.ended(seq)
        world.agent.gate.set()
    assert ann.talk.texts == [DONE, "re: I am here"]
    assert world.agent.cancelled == 1
    assert_folded_once_in_order(ann)


async def test_edge_a_reminder_during_an_answer_waits_for_its_end(world: World) -> None:
    """Concurrent processing: a timer comes while the agent answers: queued, then said (S-13)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("k", 30, "stretch", keep=True)))
    world.agent.held.add("a hard question")
    seq = await ann.say("a hard question")
    async with asyncio.TaskGroup() as group:
        group.create_task(world.advance(30))
        await ann.talk.until(lambda: ann.talk.turns[-1].outcome == "queued")
        assert ann.followed_up == []
        world.agent.gate.set()
    await ann.talk.ended(seq)
    assert ann.talk.texts == [DONE, "re: a hard question", "stretch"]
    assert_folded_once_in_order(ann)


async def test_edge_a_message_for_a_closed_socket_waits_for_each_client(world: World) -> None:
    """Closed WebSocket: it waits in the log and comes on any later connection, once (S-10)."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "while you were away")))
    await ann.until_frames(1)
    await ann.disconnect()
    await world.advance(30)
    assert ann.followed_up == ["while you were away"]
    await world.advance(30 * 86_400)
    await ann.connect()
    assert await ann.until_frames(2) == [DONE, "while you were away"]
    await ann.disconnect()
    await ann.connect("phone")  # a client that never had anything gets all of it
    assert await ann.until_frames(4) == [DONE, "while you were away"] * 2
    await ann.exchange("back")
    assert await ann.until_frames(5) == [DONE, "while you were away"] * 2 + ["re: back"]


async def test_edge_timers_of_any_duration(world: World) -> None:
    """Long-duration timers: hours, a month, a century; each comes when its time comes (S-8)."""
    ann = await world.person(has_socket=False)
    delays = {"hour": 3600.0, "month": 30 * 86_400.0, "century": 36_500 * 86_400.0}
    await ann.exchange(ask(*(follow_up(name, s, name) for name, s in delays.items())))
    assert list(await ann.timers()) == ["hour", "month", "century"]
    await world.advance(3599)
    assert ann.followed_up == []
    await world.advance(1)
    assert ann.followed_up == ["hour"]
    await world.advance(delays["month"] - 3600)
    assert ann.followed_up == ["hour", "month"]
    assert list(await ann.timers()) == ["century"]


async def test_edge_the_same_timer_id_replaces_the_earlier_timer(world: World) -> None:
    """Duplicate timer_id: time and payload are the new ones; the old one never fires (S-8)."""
    ann = await world.person()
    again = [[follow_up("a", 30, "old")], [follow_up("a", 60, "newer"), follow_up("b", 99, "b")],
             [follow_up("a", 50, "newest")]]  # fmt: skip
    await ann.exchange(ask_in_steps(*again))
    timers = await ann.timers()
    assert list(timers) == ["a", "b"]
    assert timers["a"]["message"] == "newest"
    await world.advance(49.999)
    assert ann.fired == []
    await world.advance(0.001)
    await world.advance(20)
    assert ann.followed_up == ["newest"]
    assert len(ann.fired) == 1


async def test_edge_a_thread_has_no_end_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thread lifecycle: nobody is connected, the session is released, and its timers go on
    firing until the limits stop them (S-7, S-8)."""
    async with running_world(
        tmp_path, monkeypatch, autonomy={"cooldown_ms": 0}, sessions={"idle_release_s": 0.05}
    ) as world:
        ann = await world.person()
        await ann.exchange(ask(*(follow_up(str(n), n * 3600, f"m{n}") for n in range(1, 5))))
        await ann.disconnect()
        for n in range(1, 5):
            await ann.until_released()
            await world.advance(3600)
            assert len(ann.fired) == n
        assert ann.followed_up == ["m1", "m2", "m3"]
