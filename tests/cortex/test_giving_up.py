"""Events that a session gives up on after too many attempts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.cortex.driver import answer, call
from tests.support.scripted_model import ScriptedModel, say, text_of
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.bus.bus import Bus
from vigil.contracts import State, Turn, encode
from vigil.topology import WAKE


async def test_a_message_that_is_given_up_ends_under_its_own_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5, I-5: whoever waits for the answer gets the apology. Found by the kill tests."""
    monkeypatch.setattr("services.cortex.session.engine.RETRY_DELAY_S", 0.05)
    model = ScriptedModel().install(monkeypatch)

    def behave(request: ModelRequest) -> ModelAnswer:
        raise RuntimeError("a bug")

    model.behave = behave
    async with running_stack(tmp_path, services=("cortex", "delivery")) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("kill", event_id="its-own-id"))
        await talk.until(lambda: talk.said)
        assert [said.caused_by for said in talk.said] == ["its-own-id"]
        assert [event_id for turn in talk.turns for event_id in turn.ended] == ["its-own-id"]
        await talk.close()


async def test_a_deadline_that_is_given_up_ends_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-12: nothing waits for ever: the loop that waited for it ends, the session goes on."""
    monkeypatch.setattr("services.cortex.session.engine.RETRY_DELAY_S", 0.05)
    model = ScriptedModel().install(monkeypatch)
    asked = 0

    def behave(request: ModelRequest) -> ModelAnswer:
        nonlocal asked
        asked += 1
        if text_of(request) != "kill":
            return say("fine")
        if asked == 1:
            raise ModelError("busy", is_retryable=True)
        raise RuntimeError("a bug")

    model.behave = behave
    services = ("cortex", "delivery", "scheduler")
    async with running_stack(tmp_path, services, model={"retry_base_s": 0.05}) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("kill", event_id="its-own-id"))
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: talk.texts[1:] == ["fine"])
        assert talk.said[0].caused_by == "its-own-id"
        assert "gave up" in talk.texts[0]
        await talk.close()


async def test_a_timer_that_is_given_up_closes_its_follow_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-8: a follow-up whose only timer event was passed over is not open for ever."""
    monkeypatch.setattr("services.cortex.session.engine.RETRY_DELAY_S", 0.05)
    model = ScriptedModel().install(monkeypatch)

    def behave(request: ModelRequest) -> ModelAnswer:
        source = request.rows[-1].source
        if source == "timer":
            raise RuntimeError("a bug")
        if source == "tool":
            return say("scheduled")
        return answer(call("schedule_followup", delay_seconds=0.1, reason="r"))

    model.behave = behave
    async with running_stack(tmp_path, ("cortex", "scheduler")) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: "dead_letter" in talk.notes)
        assert talk.turns[-1].state.follow_ups == {}
        await talk.close()


async def test_after_two_attempts_sessions_are_taken_over_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5: a message that kills the replica must not take its neighbours along."""
    model = ScriptedModel().install(monkeypatch)
    running, most = 0, 0

    async def behave(request: ModelRequest) -> ModelAnswer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return say("fine")

    model.behave = behave
    async with running_stack(tmp_path, services=()) as stack:
        talks = [await Talk.open(stack, f"user{i}:vigil:t") for i in range(5)]
        seqs = [await after_two_crashes(talk) for talk in talks]
        await deliver_once(await stack.bus("cortex"), len(talks))
        await stack.start("cortex")
        for talk, seq in zip(talks, seqs, strict=True):
            await talk.ended(seq)
            assert talk.notes.count("taken_over") == 1
            assert talk.turns[-1].state.attempt == 0
            await talk.close()
    assert most == 1


async def after_two_crashes(talk: Talk) -> int:
    """Leave a session as a replica that crashed twice over its message would."""
    turn = Turn(
        id="by a test",
        session_key=str(talk.key),
        ordinal=1,
        event=None,
        outcome="answered",
        state=State(turns=1, attempt=2),
        created_at=datetime.now(UTC),
    )
    await talk.store(talk.key.turn, encode(turn))
    return await talk.say("hello")


async def deliver_once(bus: Bus, count: int) -> None:
    """Take the wakes and give them back, as the broker does for a replica that died."""
    puller = await bus.pull(WAKE)
    for _ in range(count):
        await bus.nak(await anext(puller), 0.2)
    await puller.close()
