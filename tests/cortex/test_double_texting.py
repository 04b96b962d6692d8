"""Double texting against the real broker, killed in the middle too (SPEC S-12, S-13, X-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.cortex.test_engine import texts_sent, users_folded_once
from tests.support.scripted_model import ScriptedModel, say, text_of
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.errors import ConfigError
from vigil.settings import config

HASTY, PATIENT = "ann:hasty:t", "ann:patient:t"
AGENTS = {
    "hasty": {"double_text": "interrupt"},
    "patient": {"double_text": "coalesce", "coalesce_ms": 300},
}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections = {
        "agents": AGENTS,
        "sessions": {"idle_release_s": 0.5},
        "model": {"retry_base_s": 0.05},
    }
    async with running_stack(tmp_path, services=("cortex", "scheduler"), **sections) as running:
        yield running


async def until_asked(model: ScriptedModel, times: int = 1) -> None:
    async with asyncio.timeout(10):
        while len(model.requests) < times:
            await asyncio.sleep(0.01)


def ended(talk: Talk) -> list[str]:
    return [event_id for turn in talk.turns for event_id in turn.ended]


async def test_interrupt_cancels_the_call_and_answers_the_new_message(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-13: at once, with the earlier one in the history; its late answer changes nothing."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "one":
            await model.gate.wait()
        return say(f"re: {text_of(request)}")

    model.behave = behave
    talk = await Talk.open(stack, HASTY)
    await talk.say("one", event_id="e1")
    await until_asked(model)
    await talk.ended(await talk.say("two", event_id="e2"))
    assert model.cancelled == 1
    assert texts_sent(talk) == ["re: two"]
    assert [text_of_row(row) for row in model.requests[-1].rows] == ["one", "two"]
    assert ended(talk) == ["e1", "e2"]
    assert talk.notes == ["interrupted"]
    users_folded_once(talk)


def text_of_row(row: object) -> str:
    return "".join(getattr(block, "text", "") for block in row.blocks)  # type: ignore[attr-defined]


async def test_interrupt_ends_what_waits_for_a_retry(stack: Stack, model: ScriptedModel) -> None:
    """S-12: the deadline of a closed loop changes nothing."""
    failures = [ModelError("overloaded", is_retryable=True, retry_after_s=0.3)]

    def behave(request: ModelRequest) -> ModelAnswer:
        if failures:
            raise failures.pop()
        return say(f"re: {text_of(request)}")

    model.behave = behave
    talk = await Talk.open(stack, HASTY)
    await talk.say("one")
    await talk.until(lambda: [t for t in talk.turns if t.outcome == "waiting"])
    await talk.ended(await talk.say("two"))
    await talk.ended(await talk.say("three"))
    assert texts_sent(talk) == ["re: two", "re: three"]
    users_folded_once(talk)


@pytest.mark.usefixtures("halved_times")
async def test_interrupt_survives_a_kill_in_the_new_exchange(
    stack: Stack, model: ScriptedModel
) -> None:
    """X-5: the earlier one stays closed, the new one is answered by whoever takes over."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        await model.gate.wait()
        return say(f"re: {text_of(request)}")

    model.behave = behave
    talk = await Talk.open(stack, HASTY)
    await talk.say("one", event_id="e1")
    await until_asked(model)
    seq = await talk.say("two", event_id="e2")
    await until_asked(model, 2)
    await stack.contexts["cortex"].bus.connection.close()
    model.gate.set()
    await stack.start("cortex:2")
    async with asyncio.timeout(20):
        await talk.ended(seq)
    assert texts_sent(talk) == ["re: two"]
    assert sorted(ended(talk)) == ["e1", "e2"]
    users_folded_once(talk)


async def test_coalesce_answers_a_burst_once(stack: Stack, model: ScriptedModel) -> None:
    """S-13: one model call, one answer, and each message's exchange is over."""
    talk = await Talk.open(stack, PATIENT)
    seqs = [await talk.say(text, event_id=text) for text in ("one", "two", "three")]
    await talk.ended(seqs[-1])
    assert len(model.requests) == 1
    assert [text_of_row(row) for row in model.requests[0].rows] == ["one", "two", "three"]
    assert texts_sent(talk) == ["re: three"]
    assert ended(talk) == ["one", "two", "three"]
    users_folded_once(talk)


async def test_coalesce_waits_with_nothing_open_and_nothing_owed(stack: Stack) -> None:
    """ADR 3: the wake is acked, the session may be released; a deadline brings it back."""
    talk = await Talk.open(stack, PATIENT)
    seq = await talk.say("one")
    await talk.until(lambda: talk.turns)
    assert talk.turns[0].state.gathering is not None
    await stack.stop("cortex")
    info = await talk.bus.api("CONSUMER.INFO.SESSIONS.cortex-wake", {})
    assert info["num_ack_pending"] == 0
    await stack.start("cortex")
    await talk.ended(seq)
    assert texts_sent(talk) == ["re: one"]


@pytest.mark.usefixtures("halved_times")
@pytest.mark.parametrize("service", ["cortex", "scheduler"])
async def test_coalesce_survives_a_kill_while_it_waits(stack: Stack, service: str) -> None:
    """X-5: what was gathered lies in the state, its deadline on the timers."""
    talk = await Talk.open(stack, PATIENT)
    for text in ("one", "two"):
        await talk.say(text, event_id=text)
    await talk.until(lambda: len(talk.turns) == 2)
    await stack.contexts[service].bus.connection.close()
    await stack.start(f"{service}:2")
    seq = await talk.say("three", event_id="three")
    async with asyncio.timeout(25):
        await talk.ended(seq)
    assert set(ended(talk)) == {"one", "two", "three"}
    users_folded_once(talk)
    assert texts_sent(talk)[-1] == "re: three"


async def test_coalesce_joins_what_came_during_a_call(stack: Stack, model: ScriptedModel) -> None:
    async def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "one":
            await model.gate.wait()
        return say(f"re: {text_of(request)}")

    model.behave = behave
    talk = await Talk.open(stack, PATIENT)
    await talk.say("one")
    await until_asked(model)
    seqs = [await talk.say(text) for text in ("two", "three")]
    await talk.until(lambda: talk.turns[-1].state.position == seqs[-1])
    model.gate.set()
    await talk.ended(seqs[-1])
    assert texts_sent(talk) == ["re: one", "re: three"]
    assert len(model.requests) == 2


async def test_an_agent_without_a_section_enqueues(stack: Stack) -> None:
    talk = await Talk.open(stack, "ann:vigil:t")
    seqs = [await talk.say(text) for text in ("one", "two")]
    await talk.ended(seqs[-1])
    assert texts_sent(talk) == ["re: one", "re: two"]


def test_a_channel_that_is_not_configured_is_refused_at_start(tmp_path: Path) -> None:
    """X-6: or whatever the agent says on its own would fail, one message after the other."""
    (tmp_path / "vigil.toml").write_text('[people.ann]\nchannel = "pigeon"\n')
    with pytest.raises(ConfigError, match="'pigeon' is no"):
        config.load({}, home=tmp_path)
