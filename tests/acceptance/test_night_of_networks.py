"""A briefing whose channel is down: the next one; all down; at the mind's next look, once (G-6)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from services.cortex.model import ModelAnswer, ModelRequest
from tests.support.agent import Agent
from tests.support.chat_network import ChatNetwork
from tests.support.chats import pair
from tests.support.discord_server import DiscordServer
from tests.support.mailing import until_told
from tests.support.scripted_model import say
from tests.support.slack_server import SlackServer
from tests.support.world import World, running_world
from vigil.clock import SystemClock
from vigil.minds import mind_of
from vigil.subjects import Scope

PREFERRED: Final = "slack"
NEXT: Final = "discord"
LOST: Final = "reached the person over no channel"
MIND: Final = str(mind_of(Scope("vigil", "ann")))


class Network:
    """A network that goes and comes back at the same address."""

    def __init__(self, server: ChatNetwork) -> None:
        self.server = server
        self._running = contextlib.AsyncExitStack()

    async def come(self) -> None:
        port = urlsplit(self.server.url).port if self.server.url else 0
        await self._running.enter_async_context(self.server.running(port or 0))

    async def go(self) -> None:
        await self._running.aclose()
        self.server.sockets.clear()

    @property
    def said(self) -> list[str]:
        return [one.text for one in self.server.said]


class Night:
    """What the model does: a briefing says what it was asked for, the mind passes on what got
    lost."""

    def __init__(self, agent: Agent) -> None:
        self.is_morning = asyncio.Event()
        self.looks_at_lost = 0
        self._behave = agent.behave
        agent.behave = self._answer

    async def _answer(self, request: ModelRequest) -> ModelAnswer:
        text = Agent.text_of(request)
        if request.session_key != MIND:
            return await self._behave(request)  # type: ignore[misc, no-any-return]
        decision: dict[str, Any] = {"type": "no_action", "because": "nothing", "confidence": 0.9}
        if LOST in text and not self.is_morning.is_set():
            self.looks_at_lost += 1
            await self.is_morning.wait()
            words = {"text": "In the night: the second."}
            decision |= {"type": "respond", "because": "it got lost"} | words
        return say(json.dumps({"decisions": [decision]}))


@contextlib.asynccontextmanager
async def running(
    home: Path, monkeypatch: pytest.MonkeyPatch, networks: dict[str, Network]
) -> AsyncIterator[World]:
    more = {"backoff_base_s": 0.05, "attempts_max": 2}
    sections: dict[str, dict[str, Any]] = {
        "channels": {name: one.server.section() | more for name, one in networks.items()},
        "person": {"channel": PREFERRED},
        "autonomy": {"enabled": True, "max_consecutive": 100, "cooldown_ms": 0},
        "health": {"circuit_open_s": 0.05},
        "mind": {"enabled": True, "tick_seconds": 1},
    }
    async with running_world(home, monkeypatch, SystemClock(), has_hands=True, **sections) as it:
        for name in networks:
            await until_told(it, "gateway", "hears", name, "listening")
        yield it


async def test_a_briefing_goes_over_the_next_channel_and_what_no_channel_took_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = {PREFERRED: Network(SlackServer()), NEXT: Network(DiscordServer())}
    people = {PREFERRED: "U0ANN", NEXT: "77"}
    slack, discord = networks.values()
    async with contextlib.AsyncExitStack() as ends:
        for one in networks.values():
            await one.come()
            ends.push_async_callback(one.go)
        world = await ends.enter_async_context(running(tmp_path, monkeypatch, networks))
        night = Night(world.agent)
        talk = world.talk("ann:vigil:main")
        for name, one in networks.items():
            server: Any = one.server
            await pair(world.admin, "ann", people[name], server.direct(people[name]), channel=name)
            await server.write(people[name], f"Hello over {name}")
            await server.until(1)
        http = await world.gate.person("ann")

        async def brief(name: str) -> None:
            """Have a briefing made at once, as of a row that was never run."""
            body = {"name": name, "prompt": f"Brief me: {name}.", "interval_s": 86_400}
            answer = await http.post("/api/cron", json=body)
            assert answer.status_code == 201, answer.text

        # The preferred one is down: it comes over the next that she wrote through.
        await slack.go()
        await brief("the first")
        await discord.server.until(2)
        assert "the first" in discord.said[1]
        # All are: it fails, and her agent's mind knows of it, but looks only in the morning.
        await discord.go()
        await brief("the second")
        await talk.until(lambda: "failed" in {one.outcome for one in talk.receipts})
        await world.until(lambda: night.looks_at_lost)
        for one in networks.values():
            await one.come()
        for name in networks:
            await until_told(world, "gateway", "hears", name, "listening")
        night.is_morning.set()
        await slack.server.until(2)
        assert slack.said[1:] == ["In the night: the second."]
        await world.at_rest()
        (lost,) = [one for one in talk.receipts if one.outcome == "failed"]
        letters = (await http.get("/api/dead")).json()["letters"]
        assert [one["effect_id"] for one in letters] == [lost.effect_id]
        assert (len(slack.said), len(discord.said), night.looks_at_lost) == (2, 2, 1)
