"""The session engine against the real broker (SPEC S-1, S-4, S-12, S-13; ARCHITECTURE 3)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from services.cortex.session.engine import NAK_DELAY_S
from tests.cortex.driver import answer, call
from tests.support.examples import repeats
from tests.support.scripted_model import ScriptedModel, say, text_of
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.bus import lease
from vigil.bus.bus import Bus, Message
from vigil.bus.kv import KeyValue
from vigil.bus.lease import Lease, Leases
from vigil.contracts import (
    DEAD_LETTER_BYTES_MAX,
    Cause,
    Loop,
    SendMessage,
    ToolResultBlock,
    decode_dead_letter,
    encode,
)

TALKS = repeats(10, fast=4)
SAID = repeats(10, fast=4)
"""By each, one after the other."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections = {"sessions": {"idle_release_s": 0.5}, "model": {"retry_base_s": 0.05}}
    async with running_stack(tmp_path, services=("cortex",), **sections) as running:
        yield running


def users_folded_once(talk: Talk) -> None:
    """Every event in the log is folded by exactly one turn, in order (I1, I2)."""
    positions = [t.state.position for t in talk.turns]
    assert positions == sorted(positions)
    ordinals = [t.ordinal for t in talk.turns]
    assert ordinals == list(range(1, len(ordinals) + 1))
    ended = [e for t in talk.turns for e in t.ended]
    assert len(ended) == len(set(ended))


def texts_sent(talk: Talk) -> list[str]:
    effects = [e for t in talk.turns for e in t.effects]
    return [e.payload.text for e in effects if isinstance(e, SendMessage)]


async def test_messages_are_answered_in_order_and_once(stack: Stack) -> None:
    """S-1."""
    talk = await Talk.open(stack, "ann:vigil:t1")
    seqs = [await talk.say(f"m{i}") for i in range(100)]
    await talk.ended(seqs[-1])
    users_folded_once(talk)
    sends = [
        e.payload.text for t in talk.turns for e in t.effects if e.id and hasattr(e, "payload")
    ]
    assert [s for s in sends if s.startswith("re:")] == [f"re: m{i}" for i in range(100)]


async def test_an_answered_session_owes_no_wake_and_is_released(stack: Stack) -> None:
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.say("one"))
    admin = await stack.bus("admin")
    bucket = lease.Leases(admin, "test")
    async with asyncio.timeout(10):
        while await bucket.is_live(talk.key.kv_key):
            await asyncio.sleep(0.05)
        info = await admin.api("CONSUMER.INFO.SESSIONS.cortex-wake", {})
        assert info["num_ack_pending"] == 0
    await talk.ended(await talk.say("two"))
    users_folded_once(talk)


async def test_a_message_while_a_session_gives_its_lease_back_waits_for_that_alone(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given back to the broker, it would come again after `NAK_DELAY_S`."""
    begun, refused, may_go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    delays_s: list[float] = []
    release, acquire, nak = Lease.release, Leases.acquire, Bus.nak

    async def slow_release(self: Lease) -> None:
        begun.set()
        await may_go_on.wait()
        await release(self)

    async def tried(self: Leases, key: str) -> Lease | None:
        found = await acquire(self, key)
        if found is None:
            refused.set()
        return found

    async def noted(self: Bus, message: Message, delay_s: float) -> None:
        delays_s.append(delay_s)
        await nak(self, message, delay_s)

    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.say("one"))
    monkeypatch.setattr(Lease, "release", slow_release)
    monkeypatch.setattr(Leases, "acquire", tried)
    monkeypatch.setattr(Bus, "nak", noted)
    async with asyncio.timeout(30):
        await begun.wait()
        second = await talk.say("two")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await refused.wait()
    may_go_on.set()
    await talk.ended(second)
    assert NAK_DELAY_S not in delays_s
    users_folded_once(talk)


async def test_a_broker_that_takes_no_lease_back_holds_nobody_up(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def unanswered(self: Lease) -> None:
        begun.set()
        await asyncio.Event().wait()

    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.say("one"))
    monkeypatch.setattr(lease, "RELEASE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(Lease, "release", unanswered)
    async with asyncio.timeout(30):
        await begun.wait()
    stopping = asyncio.create_task(stack.stop("cortex"))
    await asyncio.wait({stopping}, timeout=5)
    assert stopping.done()


async def test_what_a_cortex_was_about_to_open_comes_again_at_once_when_it_stops(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wake that was handed out is acknowledged or given back: none waits out its time."""
    nak, given_back = Bus.nak, set[int]()

    async def noted(self: Bus, message: Message, delay_s: float) -> None:
        given_back.add(message.seq)
        await nak(self, message, delay_s)

    monkeypatch.setattr(Bus, "nak", noted)
    admin = await stack.bus("admin")
    talks = [await Talk.open(stack, f"user{n}:vigil:t1") for n in range(20)]
    seqs = await asyncio.gather(*(talk.say("hi") for talk in talks))
    await stack.stop("cortex")
    async with asyncio.timeout(4):  # they'd come again after 8
        while True:
            info = await admin.api("CONSUMER.INFO.SESSIONS.cortex-wake", {})
            if info["num_ack_pending"] <= len(given_back):
                break
            await asyncio.sleep(0.05)
    await stack.start("cortex")
    await asyncio.gather(*(t.ended(seq) for t, seq in zip(talks, seqs, strict=True)))


async def test_who_is_cancelled_while_taking_a_lease_leaves_none(stack: Stack) -> None:
    leases = Leases(await stack.bus("cortex"), "test")
    for turns in range(60):
        taking = asyncio.create_task(leases.acquire("a.b.c"))
        for _ in range(turns):
            await asyncio.sleep(0)
        taking.cancel()
        (found,) = await asyncio.gather(taking, return_exceptions=True)
        if isinstance(found, Lease):
            await found.release()
        assert not await leases.is_live("a.b.c"), turns


async def test_a_reopened_session_remembers(stack: Stack, model: ScriptedModel) -> None:
    talk = await Talk.open(stack, "ann:vigil:t1")
    for i in range(50):
        await talk.ended(await talk.say(f"m{i}"))
    before = model.requests[-1].rows
    await stack.stop("cortex")
    await stack.start("cortex")
    await talk.ended(await talk.say("last"))
    rows = model.requests[-1].rows
    assert rows[: len(before)] == before
    assert len(rows) == 101
    texts = ["".join(getattr(b, "text", "") for b in row.blocks) for row in rows]
    assert texts[-3:] == ["m49", "re: m49", "last"]


@pytest.mark.repeated
async def test_two_replicas_share_sessions(stack: Stack) -> None:
    """S-4."""
    await stack.start("cortex:2")
    talks = [await Talk.open(stack, f"user{i}:vigil:t") for i in range(2 * TALKS)]

    async def converse(talk: Talk) -> None:
        seqs = [await talk.say(f"m{i}") for i in range(SAID)]
        await talk.ended(seqs[-1])

    await asyncio.gather(*(converse(talk) for talk in talks))
    for talk in talks:
        users_folded_once(talk)


@pytest.mark.repeated
async def test_with_the_lease_forced_open_still_one_turn_per_event(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: the compare-and-set makes it correct whatever the leases say."""

    async def always(self: Leases, key: str) -> Lease:
        return _Forced(self._bucket, key, b"", 0)

    monkeypatch.setattr(Leases, "acquire", always)
    await stack.start("cortex:2", "cortex:3")
    talks = [await Talk.open(stack, f"user{i}:vigil:t") for i in range(TALKS)]

    async def converse(talk: Talk) -> None:
        for i in range(SAID):
            await talk.ended(await talk.say(f"m{i}"))

    await asyncio.gather(*(converse(talk) for talk in talks))
    for talk in talks:
        users_folded_once(talk)
        sends = [e for t in talk.turns for e in t.effects]
        assert len(sends) == SAID


class _Forced(Lease):
    """A lease that nothing stands behind."""

    async def renew(self) -> None:
        return None

    async def release(self) -> None:
        return None


@pytest.mark.usefixtures("halved_times")
async def test_a_killed_replicas_sessions_move(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, model: ScriptedModel
) -> None:
    """Issue: within 10 s, here by lease expiry since the first one never lets go."""
    hang = asyncio.Event()

    async def stall(_: ModelRequest) -> ModelAnswer:
        await hang.wait()
        raise AssertionError

    model.behave = stall
    talk = await Talk.open(stack, "ann:vigil:t1")
    seq = await talk.say("hello")
    async with asyncio.timeout(5):
        while not model.requests:
            await asyncio.sleep(0.01)
    await stack.contexts["cortex"].bus.connection.close()
    model.behave = lambda request: say("from the second")
    await stack.start("cortex:2")
    async with asyncio.timeout(15):
        await talk.ended(seq)
    users_folded_once(talk)
    assert "taken_over" in talk.notes


@pytest.mark.repeated
async def test_a_busy_session_does_not_delay_the_others(stack: Stack, model: ScriptedModel) -> None:
    """S-1: it has hundreds waiting."""
    busy = await Talk.open(stack, "busy:vigil:t")
    admin = await stack.bus("admin")
    other = await Talk.open(stack, "ann:vigil:t")
    await other.ended(await other.say("warm"))
    await asyncio.gather(*(busy.say(f"m{i}") for i in range(repeats(500, fast=100))))
    await other.ended(await other.say("hello"))
    last = (await admin.get_last("SESSIONS", busy.key.in_all)).seq  # type: ignore[union-attr]
    left = last - (busy.turns[-1].state.position if busy.turns else 0)
    assert left > 0, "the busy session was done before the other one was asked"
    await busy.until(lambda: busy.turns and busy.turns[-1].state.position == last, 60)
    users_folded_once(busy)


async def test_a_slow_model_in_one_session_does_not_delay_another(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-1: different sessions run concurrently."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "slow":
            await model.gate.wait()
        return say("done")

    model.behave = behave
    slow, quick = await Talk.open(stack, "a:vigil:t"), await Talk.open(stack, "b:vigil:t")
    seq = await slow.say("slow")
    await quick.ended(await quick.say("quick"))
    assert slow.turns == []
    model.gate.set()
    await slow.ended(seq)


async def test_a_message_during_a_call_is_folded_at_once_and_answered_after(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-13 enqueue; S-6: whether or not a turn is running."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "one":
            await model.gate.wait()
        return say(f"re: {text_of(request)}")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.say("one")
    async with asyncio.timeout(5):
        while not model.requests:
            await asyncio.sleep(0.01)
    seq = await talk.say("two")
    turns = await talk.until(lambda: [t for t in talk.turns if t.outcome == "queued"])
    assert turns[0].state.position == seq
    assert len(model.requests) == 1
    model.gate.set()
    await talk.ended(seq)
    assert texts_sent(talk) == ["re: one", "re: two"]


async def test_stop_ends_a_running_call(stack: Stack, model: ScriptedModel) -> None:
    """S-11."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        await model.gate.wait()
        return say("late")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.say("one")
    async with asyncio.timeout(5):
        while not model.requests:
            await asyncio.sleep(0.01)
    await talk.control("stop")
    turns = await talk.until(lambda: [t for t in talk.turns if t.outcome == "stopped"])
    assert turns[0].state.loop is None
    assert model.cancelled == 1
    model.gate.set()
    model.behave = lambda request: say("next")
    await talk.ended(await talk.say("two"))
    assert texts_sent(talk) == ["next"]


async def test_a_person_interrupts_what_a_timer_began(stack: Stack, model: ScriptedModel) -> None:
    """S-6: the autonomous call is ended, its answer never said."""
    await stack.start("scheduler")

    async def behave(request: ModelRequest) -> ModelAnswer:
        row = request.rows[-1]
        if row.source == "timer":
            await model.gate.wait()
            return say("too late")
        if isinstance(row.blocks[0], ToolResultBlock):
            return say("scheduled")
        if text_of(request) == "check":
            return answer(call("schedule_followup", delay_seconds=0.05, reason="r"))
        return say("direct")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.ended(await talk.say("check"))
    async with asyncio.timeout(10):
        while not any(r.rows[-1].source == "timer" for r in model.requests):
            await asyncio.sleep(0.01)
    await talk.ended(await talk.say("hello"))
    assert model.cancelled == 1
    assert texts_sent(talk) == ["scheduled", "direct"]
    assert "void" in talk.notes


async def test_a_failing_model_is_asked_again(stack: Stack, model: ScriptedModel) -> None:
    """Issue 7: a retry is a deadline on the log, not a hanging call."""
    await stack.start("scheduler")
    failures = [
        ModelError("overloaded", is_retryable=True) for _ in range(2)
    ]  # a third opens its circuit

    def behave(request: ModelRequest) -> ModelAnswer:
        if failures:
            raise failures.pop()
        return say("at last")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.ended(await talk.say("hello"))
    assert [t.outcome for t in talk.turns].count("waiting") == 2
    assert texts_sent(talk) == ["at last"]


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b'{"v":99,"type":"user_message"}',
        b'{"type":"tool_result","id":"x","session_key":"ann:vigil:t","v":1,'
        b'"created_at":"2026-01-01T00:00:00Z","payload":{"call_id":"c","content":""}}',
        b'{"type":"user_message","id":"x","session_key":"bob:vigil:t","v":1,'
        b'"created_at":"2026-01-01T00:00:00Z","payload":{"text":"for someone else"}}',
    ],
)
async def test_a_poison_event_is_dead_lettered_and_the_session_goes_on(
    stack: Stack, data: bytes
) -> None:
    """X-6: with its cause; no crash loop."""
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.ended(await talk.say("before"))
    seq = await talk.store(talk.key.in_user, data)
    await talk.ended(await talk.say("after"))
    users_folded_once(talk)
    (message,) = await talk.bus.read("DEAD", ["dead.cortex.>"])
    letter = decode_dead_letter(message.data)
    assert (letter.seq, letter.data) == (seq, data)
    assert letter.cause
    assert "dead_letter" in talk.notes


async def test_a_poison_event_too_large_for_a_dead_letter_is_cut(stack: Stack) -> None:
    """X-6: in base64 it would be larger than the broker takes."""
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.store(talk.key.in_user, b"x" * 1_000_000)
    await talk.ended(await talk.say("after"))
    (message,) = await talk.bus.read("DEAD", ["dead.cortex.>"])
    assert len(decode_dead_letter(message.data).data) == DEAD_LETTER_BYTES_MAX


async def test_an_event_for_no_session_is_passed_over(stack: Stack) -> None:
    """X-6: a subject that is no session's can't stop the others, nor come back for ever."""
    talk = await Talk.open(stack, "ann:vigil:t")
    for thread in ("_autonomy", "a*b", "ü"):
        await talk.bus.publish(f"session.vigil.ann.{thread}.in.said.user", b"{}")
    await talk.ended(await talk.say("hello"))
    async with asyncio.timeout(5):
        while (await talk.bus.api("CONSUMER.INFO.SESSIONS.cortex-wake", {}))["num_ack_pending"]:
            await asyncio.sleep(0.05)


async def test_sessions_that_are_lost_together_are_one_line(
    stack: Stack, model: ScriptedModel
) -> None:
    """X-7: not a line for each, which says no more. Here their leases are taken away."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        await model.gate.wait()
        return say("yes")

    model.behave = behave
    talks = [await Talk.open(stack, f"u{n}:vigil:t1") for n in range(20)]
    for talk in talks:
        await talk.say("hello")
    async with asyncio.timeout(10):
        while len(model.requests) < len(talks):
            await asyncio.sleep(0.01)
    leases = KeyValue(await stack.bus("admin"), "LEASES")
    with capture_logs() as lines:
        for talk in talks:
            await leases.delete(talk.key.kv_key)
        async with asyncio.timeout(15):
            while sum(line.get("sessions", 0) for line in lines) < len(talks):
                await asyncio.sleep(0.05)
    model.gate.set()
    about = [line for line in lines if line.get("action") == "cortex.lease"]
    assert sum(line["sessions"] for line in about) >= len(talks)
    assert len(about) <= 3, about
    for talk in talks:
        await talk.until(lambda talk=talk: talk.turns and talk.turns[-1].ended)


async def test_a_broker_that_forgot_the_leases_gets_them_again(stack: Stack) -> None:
    """X-5: they are in memory, and a broker that isn't ours may restart."""
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.bus.api("STREAM.DELETE.KV_LEASES", {})
    await talk.ended(await talk.say("hello"))
    assert await Leases(talk.bus, "test").is_live(talk.key.kv_key)


async def test_a_step_that_always_crashes_is_given_up(
    stack: Stack, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARCHITECTURE 3, takeover: five attempts, then an apology; the session goes on."""
    monkeypatch.setattr("services.cortex.session.engine.RETRY_DELAY_S", 0.05)

    def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "kill":
            raise RuntimeError("a bug")
        return say("fine")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t")
    await talk.ended(await talk.say("kill"))
    assert "gave up" in texts_sent(talk)[0]
    assert talk.notes.count("taken_over") == 4
    await talk.ended(await talk.say("hello"))
    assert texts_sent(talk)[1:] == ["fine"]


@pytest.mark.parametrize("damage", ["garbage", "a loop that no profile knows"])
async def test_an_unreadable_state_fails_closed(stack: Stack, damage: str) -> None:
    """S-7: direct replies go on, nothing autonomous until the person writes."""
    talk = await Talk.open(stack, "ann:vigil:t")
    seq = await talk.say("one")
    await talk.ended(seq)
    await stack.stop("cortex")
    headers = {"Vigil-Position": str(seq), "Vigil-Turn": "7"}
    count = len(talk.turns) + 1
    data = b"garbage"
    if damage != "garbage":
        last = talk.turns[-1]
        cause = Cause(id="e", seq=seq, type="user_message")
        loop = Loop(
            cause=cause, fence=seq, begun_at=last.created_at, is_direct=True, purpose="levitate"
        )
        state = msgspec.structs.replace(last.state, loop=loop)
        data = encode(msgspec.structs.replace(last, state=state))
        count += 1
    await talk.bus.publish(talk.key.turn, data, headers)
    await stack.start("cortex")
    await talk.say("two")
    await talk.until(lambda: len(talk.turns) == count)
    turn = talk.turns[-1]
    assert (turn.ordinal, turn.outcome) == (8, "answered")
    assert not turn.state.is_locked


@pytest.mark.usefixtures("own_broker")
async def test_a_broker_kill_loses_nothing(stack: Stack) -> None:
    """X-5."""
    stack.broker.watch()
    talks = [await Talk.open(stack, f"user{i}:vigil:t") for i in range(TALKS)]

    async def converse(talk: Talk) -> None:
        for i in range(10):
            await talk.ended(await talk.say(f"m{i}", event_id=f"{talk.key}-{i}"))

    async def kill() -> None:
        for _ in range(2):
            await asyncio.sleep(0.3)
            stack.broker.kill()

    async with asyncio.timeout(60):
        await asyncio.gather(kill(), *(converse(talk) for talk in talks))
    for talk in talks:
        users_folded_once(talk)
        assert len([e for t in talk.turns for e in t.effects]) == 10
