"""A budget that ends while an MCP server waits for a model's answer (C-9, LOOPS L-21)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cortex.test_stopped_work import ANSWER, USED
from tests.support.executing import has_offered
from tests.support.mcp_client import NASTY, sandbox
from tests.support.messages_api import Reply, calls, messages_api, says
from tests.support.messages_replies import said
from tests.support.stack import running_stack
from tests.support.talk import Talk
from tests.support.world import StoppedClock

ROOM: Final = sum(USED.values()) + 200
"""For one answer of the conversation, and too little for any other call."""
SERVICES: Final = ("cortex", "scheduler", "executor", "delivery")
SAMPLER: Final = "A program that serves tools wants an answer"


def behave(body: dict[str, Any]) -> Reply:
    """Call the tool; then say what came of it."""
    if SAMPLER in str(body["system"]):
        return says("A sum.", usage={"input_tokens": 300, "output_tokens": 20})
    told = [
        block["content"]
        for message in said(body)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    return (
        says(f"It says: {told[-1]}")
        if told
        else calls("inn__summarise", {"text": "tea"}, usage=USED)
    )


@pytest.mark.parametrize("era", ["modern", pytest.param("legacy", marks=pytest.mark.long)])
async def test_the_server_waits_with_the_budget(tmp_path: Path, era: str) -> None:
    """Nothing beyond the cap is asked: the session that answers waits, whoever made the call waits
    with it, and the next day both go on by themselves, once."""
    await sandbox()
    clock = StoppedClock()
    moods = ["samples", "legacy"] if era == "legacy" else ["samples"]
    inn = {"command": sys.executable, "args": [str(NASTY), *moods], "sampling_tokens": 300}
    settings: dict[str, Any] = {
        "model": {"main": "claude-test", "max_tokens": ANSWER},
        "budget": {"daily_tokens": ROOM, "share_per_user": 1.0, "share_unattended": 1.0},
        "mcp": {"inn": inn | {"risk": "read"}},
    }
    async with (
        messages_api(behave) as api,
        running_stack(tmp_path, SERVICES, clock, anthropic_base_url=api.url, **settings) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t1")
        await has_offered(talk.bus, "inn")
        seq = await talk.say("sum up")
        await talk.until(lambda: talk.turns and talk.turns[-1].state.tasks)
        ((_, task),) = talk.turns[-1].state.tasks.items()
        sampler = await Talk.open(stack, task.child)
        await sampler.until(lambda: "budget_waits" in sampler.notes)
        assert len(api.requests) == 1
        # Whoever waits for a session that waits does so, too.
        clock.move(150)
        clock.move(86_400)
        await talk.ended(seq)
        await talk.until(lambda: talk.said)
        assert talk.texts == ["It says: tea: A sum."]
        asked = ["sampler" if SAMPLER in str(one.body["system"]) else "" for one in api.requests]
        assert asked == ["", "sampler", ""]
        assert talk.turns[-1].state.tasks == {}
