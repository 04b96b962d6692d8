"""The whole way of a call: engine, budget, the real SDK, a server that speaks the Messages API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.messages_api import calls, fails, messages_api, says
from tests.support.messages_replies import situation
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk

KEYED = {"model": {"main": "claude-test", "retry_base_s": 0.05, "retries_max": 2}}


async def used_tokens(stack: Stack) -> tuple[int, int]:
    """Return (reserved, used) of the agent today."""
    bus = await stack.bus("admin")
    found = await bus.read("KV_BUDGETS", ["$KV.BUDGETS.*.instance.all"])
    account = msgspec.json.decode(found[-1].data)
    return account["reserved"], account["used"]


async def test_a_conversation_with_a_real_endpoint(tmp_path: Path) -> None:
    """Issue: a reminder with a Messages API endpoint, tokens counted."""
    async with (
        messages_api() as api,
        running_stack(
            tmp_path,
            services=("cortex", "scheduler", "delivery"),
            anthropic_base_url=api.url,
            **KEYED,
        ) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("remind me in 1 seconds to stretch"))
        await talk.until(lambda: len(talk.said) == 2)
        answer, reminder = talk.said
        assert "1 seconds" in answer.text
        assert reminder.tag == "Agent follow-up"
        assert "stretch" in reminder.text
        assert "No follow-ups are open" in situation(api.requests[0].body)
        reserved, used = await used_tokens(stack)
        assert (reserved, used > 0) == (0, True)


async def test_an_overloaded_model_costs_nothing_and_is_asked_again(tmp_path: Path) -> None:
    """Issue 7; C-9: a call that was refused uses no tokens."""
    async with (
        messages_api() as api,
        running_stack(
            tmp_path,
            services=("cortex", "scheduler", "delivery"),
            anthropic_base_url=api.url,
            **KEYED,
        ) as stack,
    ):
        api.replies.extend([fails(529), fails(429), says("Here I am.")])
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: talk.texts == ["Here I am."])
        assert [t.outcome for t in talk.turns] == ["waiting", "waiting", "answered"]
        assert (await used_tokens(stack))[0] == 0


async def test_a_count_that_can_not_be_true_leaves_what_was_set_aside(tmp_path: Path) -> None:
    """Issue 14: a negative number of tokens gives nothing back."""
    async with (
        messages_api() as api,
        running_stack(
            tmp_path, services=("cortex", "delivery"), anthropic_base_url=api.url, **KEYED
        ) as stack,
    ):
        api.replies.append(says("Here.", usage={"input_tokens": -9_000_000, "output_tokens": 5}))
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        assert len(api.requests) == 1
        reserved, used = await used_tokens(stack)
        assert (reserved > 0, used) == (True, 0)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"daily_tokens": 10, "share_per_user": 1.0}, "daily limit of 10 tokens"),
        (
            {"daily_usd": 5.0},
            "claude-test has no price for today, and budget.daily_usd allows only what has one: "
            "models.claude-test.prices sets it",
        ),
    ],
)
async def test_what_the_budget_refuses_is_told(
    tmp_path: Path, budget: dict[str, Any], words: str
) -> None:
    """C-9, L-22: a hard stop, before the call, which says why."""
    sections = KEYED | {"budget": budget}
    async with (
        messages_api() as api,
        running_stack(
            tmp_path, services=("cortex", "delivery"), anthropic_base_url=api.url, **sections
        ) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.say("hello")
        await talk.until(lambda: bool(talk.said))
        assert words in talk.texts[0]
        assert talk.notes == ["budget_exhausted", "budget_waits"]
        assert api.requests == []


async def test_a_model_that_calls_what_is_not_there_can_correct_itself(tmp_path: Path) -> None:
    """X-6: unknown tools and bad arguments go back to it as errors."""
    async with (
        messages_api() as api,
        running_stack(
            tmp_path, services=("cortex", "delivery"), anthropic_base_url=api.url, **KEYED
        ) as stack,
    ):
        api.replies.extend(
            [calls("launch_rocket", {}), calls("schedule_followup", {"when": 1}), says("Sorry.")]
        )
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: talk.texts == ["Sorry."])
        results = [
            block
            for request in api.requests[1:]
            for block in request.body["messages"][-1]["content"]
            if block["type"] == "tool_result"
        ]
        assert [r["is_error"] for r in results] == [True, True]
