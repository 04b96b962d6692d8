"""What the agent plans and says while the person writes: void, whatever comes first (SPEC S-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from services.cortex.models.messages import messages_of
from tests.cortex.driver import answer, call
from tests.cortex.test_engine import users_folded_once
from tests.support.scripted_model import ScriptedModel, say, text_of
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.contracts import ToolResultBlock

LATE = "made without the second message"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections: dict[str, Any] = {
        "sessions": {"idle_release_s": 0.5},
        "model": {"retry_base_s": 0.01},
        "autonomy": {"cooldown_ms": 0},
    }
    services = ("cortex", "scheduler", "delivery")
    async with running_stack(tmp_path, services=services, **sections) as running:
        yield running


def shown(request: ModelRequest) -> str:
    return str(messages_of(request.rows))


# ---------------------------------------------------------------- follow-ups


@pytest.mark.parametrize("calls_before", [0, 1, 2])
@pytest.mark.parametrize("is_folded", [True, False])
async def test_a_follow_up_made_without_the_newest_message_is_never_said(
    stack: Stack, model: ScriptedModel, calls_before: int, is_folded: bool
) -> None:
    """S-6: the message is stored after so many model calls of the answer to the one before it, and
    folded before the follow-up is planned, or after."""
    is_stored, may_plan = asyncio.Event(), asyncio.Event()
    asked = 0

    async def behave(request: ModelRequest) -> ModelAnswer:
        nonlocal asked
        results = [b for b in request.rows[-1].blocks if isinstance(b, ToolResultBlock)]
        if not results and text_of(request) != "one":
            return say("yes")
        asked += 1
        if asked <= calls_before:
            return answer(call("send_message", text=f"step {asked}"))
        is_stored.set()
        if asked == calls_before + 1:
            await may_plan.wait()
            plan = {"delay_seconds": 0.2, "reason": "r", "message": LATE}
            kept = {**plan, "message": "as you asked", "keep": True}
            return answer(call("schedule_followup", **plan), call("schedule_followup", **kept))
        return say("planned")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.say("one")
    await is_stored.wait()
    if not is_folded:
        may_plan.set()
    seq = await talk.say("two")
    if is_folded:
        await talk.until(lambda: talk.turns and talk.turns[-1].state.position >= seq)
        may_plan.set()
    await talk.ended(seq)
    await talk.until(lambda: "as you asked" in talk.texts)
    assert LATE not in talk.texts
    assert not talk.turns[-1].state.follow_ups
    assert "void" in talk.notes
    users_folded_once(talk)


# ---------------------------------------------------------------- what was not said


async def test_what_delivery_voided_is_not_shown_as_said(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-6: neither the answer, nor what a tool call sent; what led to them stays in the history,
    and what was said before the person spoke stays, too."""

    def behave(request: ModelRequest) -> ModelAnswer:
        text = text_of(request)
        if "red" in text or "blue" in text:
            return answer(call("send_message", text=f"by tool: {text[-12:]}"))
        if isinstance(request.rows[-1].blocks[0], ToolResultBlock):
            return say("in words")
        return say(f"re: {text}")

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.outside("blue", is_trusted=True))
    await talk.until(lambda: len(talk.said) == 2)
    await talk.ended(await talk.say("one"))
    await talk.until(lambda: len(talk.said) == 3)
    assert "in words" in shown(model.requests[-1])
    await stack.stop("delivery")
    await talk.ended(await talk.outside("red", is_trusted=True))
    await talk.ended(await talk.say("two"))
    assert shown(model.requests[-1]).count("in words") == 1, "what was said stays, the rest goes"
    assert shown(model.requests[-1]).count("Not sent") == 1
    assert "red" in shown(model.requests[-1])
    await stack.start("delivery")
    await talk.until(lambda: len(talk.receipts) == 2)
    assert {receipt.outcome for receipt in talk.receipts} == {"void"}
    assert {receipt.effect_id for receipt in talk.receipts} == {
        id_ for turn in talk.turns for id_ in turn.unsaid
    }
    await stack.stop("cortex")
    await stack.start("cortex")
    await talk.ended(await talk.say("three"))
    assert shown(model.requests[-1]).count("in words") == 1, "as it is read back"
    users_folded_once(talk)


# ---------------------------------------------------------------- what was ordered


@pytest.mark.parametrize("is_budget", [True, False])
async def test_a_reminder_is_said_without_a_model(
    stack: Stack, model: ScriptedModel, is_budget: bool
) -> None:
    """S-6, S-7: late and plainly, when the retries are used up, or the tokens of the day."""

    def behave(request: ModelRequest) -> ModelAnswer:
        if text_of(request) == "remind me":
            plan = {"delay_seconds": 0.1, "reason": "drink tea", "keep": True}
            return answer(call("schedule_followup", **plan))
        if isinstance(request.rows[-1].blocks[0], ToolResultBlock):
            return say("I will.")
        budget_at = datetime.now(UTC) if is_budget else None
        raise ModelError("away", is_retryable=not is_budget, budget_at=budget_at)

    model.behave = behave
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.say("remind me")
    await talk.until(lambda: "Reminder: drink tea" in talk.texts)
    assert talk.said[-1].tag == "Agent follow-up"
    assert "model_failed" in talk.notes
    assert talk.notes.count("budget_exhausted") == is_budget
