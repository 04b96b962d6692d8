"""What somebody sets up who never opens a terminal, in a real Chromium: who thinks, a second agent,
an account with a chat network, an MCP server, and another model in the end; each is used at once.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import chromium
from tests.support.chat_api import chat_api
from tests.support.chromium import Tab
from tests.support.mcp_client import NASTY, sandbox
from tests.support.messages_replies import says
from tests.support.obedient import obey
from tests.support.scripted_matrix import OWN, TOKEN, ScriptedMatrix
from tests.support.world import World, running_world
from vigil.clock import SystemClock
from vigil.local import model_servers
from vigil.settings import config
from vigil.settings.live import followed

pytestmark = pytest.mark.skipif(chromium.binary() is None, reason="there is no Chromium here")
ROLE = "You help Mia train for a marathon."
SUM = 'do: notes__add {"a": 4000, "b": 711}'


@pytest.mark.long
async def test_all_of_it_is_set_up_and_used_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox()
    monkeypatch.setattr(followed, "POLL_S", 0.05)
    matrix, home = ScriptedMatrix(), tmp_path / "home"
    async with (
        matrix.running(),
        chat_api(obey) as first,
        chat_api(lambda _: says("Here thinks another.")) as second,
        running_world(home, monkeypatch, SystemClock(), has_agent=False, has_hands=True) as world,
        chromium.opened(tmp_path / "profile") as tab,
    ):
        second.models = ("gemma3:4b",)
        usual = {"Ollama": first.port, "LM Studio": second.port}
        monkeypatch.setattr(model_servers, "USUAL", usual)
        console = f"http://127.0.0.1:{world.gate.port}/console"
        api = await world.gate.person("me", is_admin=True)
        await tab.look()
        path = (await api.post("/api/console/links")).json()["path"]
        await tab.go(console.removesuffix("/console") + path)
        await tab.press("form button")
        await think(world, tab, console, first.url, "qwen3:8b")

        await tab.go(f"{console}/agents")
        await tab.type("[name=name]", "coach")
        await tab.type("[name=role]", ROLE)
        await tab.press("button.go")
        assert ROLE in (home / "agents" / "coach" / "ROLE.md").read_text()
        await say(tab, console, "me:coach:main", "Good morning!")
        assert ROLE in json.dumps(first.requests[-1].body)

        await tab.go(f"{console}/networks?add=matrix")
        await tab.type("[name=f-homeserver]", matrix.url)
        await tab.type("[name=f-user_id]", OWN)
        await tab.type("[name=f-access_token]", TOKEN)
        await tab.press("button[value=add]")
        await tab.until("document.body.innerText.includes('hears at once')")

        await tab.go(f"{console}/servers")
        await tab.type("form.panel [name=name]", "notes")
        await tab.type("form.panel [name=command]", shlex.join([sys.executable, str(NASTY)]))
        await tab.run("document.querySelector('form.panel [name=risk]').value = 'read'")
        await tab.press("form.panel button.go")
        assert "Start the server notes?" in await tab.text()
        await tab.press("#sure button")
        await tab.until("document.body.innerText.includes('It works: ')")
        await say(tab, console, "me:vigil:main", SUM)
        await tab.until("document.body.innerText.includes('4711')")

        await think(world, tab, console, second.url, "gemma3:4b")
        await say(tab, console, "me:vigil:new", "Who are you?")
        await tab.until("document.body.innerText.includes('Here thinks another.')")
        assert tab.complaints == []
    found = config.load({}, home=home).config
    assert (set(found.agents), set(found.mcp)) == ({"coach"}, {"notes"})
    assert "matrix" in found.channels


async def think(world: World, tab: Tab, console: str, server: str, model: str) -> None:
    """Choose who thinks, of those that were found on this machine."""
    await tab.go(f"{console}/welcome")
    await tab.press_here(f"[name=who][value='server {server} {model}']")
    await tab.press("form[action$='#model'] button")
    assert "thinks from now on" in await tab.text()
    facts: dict[str, Any] = world.stack.contexts["cortex"].facts
    await world.until(lambda: facts["model"] == model)


async def say(tab: Tab, console: str, session: str, text: str) -> None:
    """Write in a conversation, and wait for an answer."""
    await tab.go(f"{console}/conversations/{session}")
    before = await tab.run("document.querySelectorAll('article.assistant').length")
    await tab.until("document.activeElement.name === 'text'")
    await tab.call("Input.insertText", text=text)
    await tab.enter()
    await tab.until(f"document.querySelectorAll('article.assistant').length > {before}")
