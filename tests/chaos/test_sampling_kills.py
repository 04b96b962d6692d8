"""A server over HTTP has a model answer, and who asks the model is killed meanwhile (C-1, S-12)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.killable import NO_SANDBOX, killable
from tests.executor.test_mcp_servers import everything
from tests.support.executing import has_offered
from tests.support.messages_api import Reply, calls, messages_api, says
from tests.support.messages_replies import said
from tests.support.talk import Talk
from vigil.contracts import CallTool, SpawnSession, ToolResultBlock

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

TOOL: Final = "every__trigger-sampling-request"
PATIENCE_S: Final = 90.0
SECTION: Final = """
[mcp.every]
url = "{url}"
allow_private = true
sampling_tokens = 100
"""


class Mind:
    """Calls the tool, and answers the server; the first time it never comes to an end."""

    def __init__(self) -> None:
        self.sampled = 0
        self.is_asked = asyncio.Event()

    def __call__(self, body: dict[str, Any]) -> Reply:
        if "A program that serves tools wants an answer" in str(body["system"]):
            self.sampled += 1
            self.is_asked.set()
            return Reply(fault="hang") if self.sampled == 1 else says("Ho.")
        if [tool["name"] for tool in body.get("tools", ())] == ["memory_save"]:
            return says("Nothing.")
        is_told = any(
            block["type"] == "tool_result" for message in said(body) for block in message["content"]
        )
        return says("Done.") if is_told else calls(TOOL, {"prompt": "Hi", "maxTokens": 20})


async def test_a_killed_cortex_answers_the_server_once(tmp_path: Path) -> None:
    """The session that answers is taken up by the next; the server's call is held meanwhile."""
    mind = Mind()
    async with everything(is_web=True) as every, messages_api(mind) as api:
        (tmp_path / "vigil.toml").write_text(SECTION.format(url=every["url"]))
        named = {"VIGIL_MODEL": "claude-test", "ANTHROPIC_BASE_URL": api.url}
        services: dict[str, Any] = dict.fromkeys(
            ("cortex", "executor", "scheduler", "delivery"), ()
        )
        async with killable(tmp_path, services, NO_SANDBOX | named) as (stack, processes):
            talk = await Talk.open(stack, "ann:vigil:t1")
            await has_offered(talk.bus, "every")
            seq = await talk.say("sample")
            async with asyncio.timeout(PATIENCE_S):
                await mind.is_asked.wait()
            assert processes.kill("cortex")
            await talk.ended(seq)
            await talk.until(lambda: talk.texts == ["Done."], PATIENCE_S)
            effects = [effect for turn in talk.turns for effect in turn.effects]
            assert sum(isinstance(one, SpawnSession) for one in effects) == 1
            assert sum(isinstance(one, CallTool) for one in effects) == 2
            blocks = [b for turn in talk.turns for row in turn.rows for b in row.blocks]
            (told,) = [one for one in blocks if isinstance(one, ToolResultBlock)]
            assert '"text": "Ho."' in told.content
            assert mind.sampled == 2
            assert talk.turns[-1].state.tasks == {}
            assert not [one for one in processes.faults() if "Traceback" in one]
