"""Channels in the console, added and removed while everything runs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.console import Reader, Shown, signed_in
from tests.support.talk import PATIENCE_S
from tests.support.telegram_server import BOT, TOKEN, TelegramServer
from tests.support.world import running_world
from vigil.channels.chats import posts
from vigil.clock import SystemClock
from vigil.edits import toml_sections
from vigil.settings.live import followed

ANN = 77


async def until(reader: Reader, text: str, *, is_there: bool) -> Shown:
    """Return the page of networks once it has a text, or has it no more. The gateway begins anew
    meanwhile, and a connection that waited for its answer is asked once more, as by a browser."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(httpx2.TransportError):
                if (text in (shown := await reader.page("/networks")).text) is is_there:
                    return shown
            await asyncio.sleep(0.05)


async def test_a_bot_is_added_heard_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an admin alone; what can't work leaves nothing; its secret is in a file of its own."""
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    server, file = TelegramServer(), tmp_path / "vigil.toml"
    kept = tmp_path / "keys/channel-telegram-token"

    def sections() -> dict[str, Any]:
        found = tomllib.loads(file.read_text()).get("channels", {}) if file.exists() else {}
        return {name: one for name, one in found.items() if name != "push"}

    async with server.running(), running_world(tmp_path, monkeypatch, SystemClock()) as world:
        root = await signed_in(world.gate, "root", is_admin=True)
        ann = await signed_in(world.gate, "ann")
        form = {"do": "add", "kind": "telegram", "f-bot": BOT, "f-token": TOKEN}
        assert (await ann.send("/networks", **form)).status_code in (403, 422)
        assert "Add one" not in (await ann.page("/networks")).text
        assert "What the bot is called" in (await root.page("/networks", add="telegram")).text
        for wrong, why in (
            ({"f-token": "secret"}, "has another form than 123456"),
            ({"f-token": ""}, "is missing"),
            ({"f-bot": "bot"}, "must be the bot's name"),
            ({"kind": "webhook"}, "no such kind is offered"),
        ):
            refused = await root.send("/networks", **form | wrong)
            assert refused.status_code in (409, 422)
            assert why in Shown(refused.text).text
            assert (sections(), kept.exists()) == ({}, False)

        assert await root.did("/networks", **form) == "/console/networks?added=telegram"
        assert sections() == {
            "telegram": {"kind": "telegram", "bot": BOT, "token_file": f"keys/{kept.name}"}
        }
        assert (kept.read_text(), kept.stat().st_mode & 0o777) == (f"{TOKEN}\n", 0o600)
        await until(root, BOT, is_there=True)
        # Nothing of the world is reached from here: its server is ours.
        toml_sections.set_value(file, ("channels", "telegram", "api_url"), server.url)
        toml_sections.set_value(file, ("channels", "telegram", "poll_s"), 1.0)
        await until(root, "hears at once", is_there=True)
        page = await ann.send("/networks", do="pair", name="telegram", address="")
        (code,) = re.findall(r'id="made">([^<]+)<', page.text)
        server.write(ANN, f"/start {code}")
        server.write(ANN, "Tea?")
        assert [one.text for one in await server.until(2)] == [posts.PAIRED, "re: Tea?"]

        assert (await ann.send("/networks", do="remove", name="telegram")).is_error
        assert set(sections()) == {"telegram"}
        await root.did("/networks", do="remove", name="telegram")
        assert (sections(), kept.exists()) == ({}, False)
        await until(root, BOT, is_there=False)

        # One of the same name is another: nobody is paired with it.
        await root.did("/networks", **form)
        shown = await until(root, BOT, is_there=True)
        assert f"{ANN}" not in shown.text
        assert not shown.strange()
