"""An agent in an editor: `vigil acp`, by the client of the protocol's own SDK, unchanged."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from msgspec.structs import replace

from tests.acceptance.test_openai_programs import PNG, history
from tests.support import warm
from tests.support.agent import ask
from tests.support.cli import Cli
from tests.support.hands_records import SHELF
from tests.support.world import running_world
from vigil.bus.kv import KeyValue
from vigil.contracts import encode

BURN = "files__burn"


class Editor:
    """An editor that keeps what it is told, and lets its person decide by `verdict`."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.verdict = "accept"
        self.asked: list[tuple[schema.ToolCallUpdate, list[str]]] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, [one.kind for one in options]))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.verdict)
        return schema.RequestPermissionResponse(outcome=outcome)

    def heard(self, kind: str = "agent_message_chunk") -> str:
        """Return what it was told so, and forget it."""
        texts = [one.content.text for one in self.updates if one.session_update == kind]
        self.updates = [one for one in self.updates if one.session_update != kind]
        return "".join(texts)


async def test_an_editor_talks_by_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamed, cancelled, asked for leave, loaded again."""
    async with running_world(tmp_path / "world", monkeypatch, has_hands=True) as world:
        ann = await world.person(has_socket=False)
        tool = replace(SHELF.tools[0], name=BURN, risk="destructive", input_schema={})
        shelf = replace(SHELF, source="files", tools=(tool,))
        await KeyValue(world.gate.admin, "TOOLS").put("files", encode(shelf))
        environ = Cli(tmp_path / "home").environ | {
            "VIGIL_URL": str(ann.http.base_url).rstrip("/"),
            "VIGIL_TOKEN": ann.token,
        }
        command = warm.relayed("vigil.cli", "acp")
        editor: Any = Editor()
        async with acp.spawn_agent_process(editor, *command, env=environ) as (agent, _):
            begun = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            assert begun.protocol_version == 1
            assert begun.agent_info is not None
            assert begun.agent_info.name == "vigil"
            key = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            done = await agent.prompt(session_id=key, prompt=[acp.text_block("Hello")])
            assert (done.stop_reason, editor.heard()) == ("end_turn", "re: Hello")
            link = acp.resource_link_block("plan.md", "file:///plan.md")
            picture = acp.image_block(PNG, "image/png")
            await agent.prompt(session_id=key, prompt=[acp.text_block("See"), link, picture])
            assert "file:///plan.md" in editor.heard()
            assert history(world.agent.requests[-1])[:2] == ["Hello", "re: Hello"]
            assert "1x1 pixels" in str(world.agent.requests[-1].rows)

            # A file that the editor brings along is outside content, named where it stands.
            assert begun.agent_capabilities.prompt_capabilities.embedded_context
            held = schema.TextResourceContents(uri="file:///a%20b.py", text="print(1)\n")
            part = schema.EmbeddedResourceContentBlock(type="resource", resource=held)
            await agent.prompt(session_id=key, prompt=[acp.text_block("Why?"), part, part])
            assert editor.heard() == "re: Why?\n\nfile:///a%20b.py\n\nfile:///a%20b.py"
            (file,) = world.agent.requests[-1].files
            assert file == hashlib.sha256(b"print(1)\n").hexdigest()
            assert "name='a b.py'" in str(world.agent.requests[-1].rows[-1])

            # What can't be undone is asked for in the editor, and runs once.
            await agent.prompt(session_id=key, prompt=[acp.text_block(ask((BURN, {"path": "a"})))])
            ((call, kinds),) = editor.asked
            assert (call.title, call.raw_input) == (BURN, {"path": "a"})
            assert kinds == ["allow_once", "reject_once"]
            assert "Done." in editor.heard()
            editor.verdict = "reject"
            await agent.prompt(session_id=key, prompt=[acp.text_block(ask((BURN, {"path": "b"})))])
            assert len(editor.asked) == 2
            assert not (await ann.http.get("/api/approvals")).json()["approvals"]
            states = (await ann.http.get("/api/approvals?state=all")).json()["approvals"]
            found = {one["input"]["path"]: one["state"] for one in states}
            assert found == {"a": "accepted", "b": "rejected"}
            editor.heard()

            world.agent.held.add("Slow")
            waiting = asyncio.create_task(
                agent.prompt(session_id=key, prompt=[acp.text_block("Slow")])
            )
            await world.agent.thinking.wait()
            await agent.cancel(session_id=key)
            assert (await waiting).stop_reason == "cancelled"
            world.agent.gate.set()
            for session_id in ("me:vigil:gone", "bob:vigil:t1"):
                with pytest.raises(acp.RequestError):
                    await agent.prompt(session_id=session_id, prompt=[acp.text_block("Hi")])
                with pytest.raises(acp.RequestError):
                    await agent.load_session(cwd="/", session_id=session_id, mcp_servers=[])
            with pytest.raises(acp.RequestError, match="audio"):
                await agent.prompt(session_id=key, prompt=[acp.audio_block("", "audio/wav")])
            # Loaded again it is told whole, and goes on.
            editor.heard()
            await agent.load_session(cwd="/", session_id=key, mcp_servers=[])
            assert editor.heard("user_message_chunk").startswith("Hello")
            assert editor.heard().startswith("re: Hello")
            await agent.prompt(session_id=key, prompt=[acp.text_block("And now")])
            assert editor.heard() == "re: And now"
