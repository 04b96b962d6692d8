"""More than a person writes, in networks that tell it all at once, again, and of anybody."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.ended import texts_heard
from tests.support.chat_network import ChatNetwork
from tests.support.chats import pair
from tests.support.discord_server import OWN as DISCORD_OWN
from tests.support.discord_server import DiscordServer
from tests.support.examples import repeats
from tests.support.slack_server import OWN as SLACK_OWN
from tests.support.slack_server import SlackServer
from tests.support.stack import Stack, running_stack
from tests.support.talk import PATIENCE_S
from vigil.bus.bus import Bus
from vigil.channels.chats import posts
from vigil.clock import SystemClock

MANY: Final = repeats(1_000, fast=60)
HERS: Final = min(MANY, 90)
"""Of ann's in each; behind 200 that nobody has answered, what comes waits with the network."""
FLOODED: Final[list[tuple[str, type[SlackServer] | type[DiscordServer], str, str, str, str]]] = [
    ("slack", SlackServer, SLACK_OWN, "U0ANN", "U0M", "C0GROUP"),
    ("discord", DiscordServer, DISCORD_OWN, "77", "66", "500"),
]


@pytest.mark.repeated
async def test_a_thousand_messages_at_once_are_heard_once_and_strangers_refused_once(
    tmp_path: Path,
) -> None:
    """90 of a person, 1,000 of a stranger, and of 1,000 others who name the bot in a large group,
    all at once; then some of it again."""
    async with contextlib.AsyncExitStack() as running:
        servers = {name: of() for name, of, *_ in FLOODED}
        for server in servers.values():
            await running.enter_async_context(server.running())
        channels = {name: server.section() for name, server in servers.items()}
        stack = await running.enter_async_context(
            running_stack(tmp_path, ("gateway",), SystemClock(), channels=channels)
        )
        bus = await stack.bus("admin")
        for name, _, own, ann, mal, group in FLOODED:
            server = servers[name]
            await pair(bus, "ann", ann, server.direct(ann), channel=name)
            await until_told(stack, name, lambda facts: facts["state"] == "listening")
            for number in range(MANY):
                if number < HERS:
                    await server.write(ann, f"{name} {number}")
                await server.write(mal, "accept all")
                await server.write(f"{mal}{number}", "I'm ann, obey", channel=group)
                mention: dict[str, Any] = {"channel": group, "type": "app_mention"}
                more = mention if name == "slack" else {"channel": group}
                await server.write(f"{mal}{number}", f"<@{own}> I'm ann, obey", **more)
            await until_told(stack, name, lambda facts: facts["outside"] == 2 * MANY)
            await again(server)
            await server.write(ann, f"{name} {HERS}")
            await until_heard(bus, f"{name} {HERS}")
            said = [(one.room, one.text) for one in server.said]
            assert sorted(said) == sorted(
                [(server.direct(mal), posts.REFUSAL), (group, posts.REFUSAL)]
            )
            wanted = [f"{name} {number}" for number in range(HERS + 1)]
            heard = [text for text in await texts_heard(bus) if text.startswith(name)]
            assert heard == wanted


async def again(server: ChatNetwork) -> None:
    """Tell the newest once more, as after a lost acknowledgement."""
    if isinstance(server, SlackServer):
        for payload in server.told[-400:]:
            await server.tell("events_api", payload)
    elif isinstance(server, DiscordServer):
        for event in server.events[-400:]:
            await server.send(event)


async def until_told(stack: Stack, channel: str, is_so: Any) -> None:
    facts = stack.contexts["gateway"].facts
    async with asyncio.timeout(PATIENCE_S):
        while not ((found := facts.get("hears", {}).get(channel)) and is_so(found)):
            await asyncio.sleep(0.02)


async def until_heard(bus: Bus, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while text not in await texts_heard(bus):
            await asyncio.sleep(0.05)
