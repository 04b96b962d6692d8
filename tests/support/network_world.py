"""All services with a bot of a chat network that runs in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.agent import ask
from tests.support.chat_network import Behaviour, ChatNetwork
from tests.support.mailing import until_told
from tests.support.world import World, running_world
from vigil.channels import pairs
from vigil.channels.chats.parts import PARTS_MAX
from vigil.clock import SystemClock

PUBLIC_URL: Final = "https://home.example/vigil"
Step = tuple[str, list[Behaviour], str, int]
"""What is said, how the network fails, how the try ends, and how many messages arrive."""


@contextlib.asynccontextmanager
async def running_network_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    network: ChatNetwork,
    channel: str,
    *,
    has_hands: bool = False,
) -> AsyncIterator[World]:
    """Run them, with `[channels.CHANNEL]` as the network says it."""
    async with network.running():
        sections: dict[str, dict[str, Any]] = {
            "channels": {channel: network.section() | {"backoff_base_s": 0.05}},
            "person": {"channel": channel},
            "autonomy": {"enabled": True},
            "health": {"circuit_open_s": 0.05},
            "gateway": {"public_url": PUBLIC_URL},
        }
        async with running_world(
            home, monkeypatch, SystemClock(), has_hands=has_hands, **sections
        ) as world:
            await until_told(world, "gateway", "hears", channel, "listening")
            yield world


async def code_for(world: World, channel: str, user: str) -> str:
    """Return a code that makes the address somebody's which brings it."""
    code = pairs.new_code()
    await pairs.ask_for(world.admin, channel, user, "", code, world.clock.now())
    return code


async def request_a_command(world: World, network: ChatNetwork) -> None:
    """Have the agent ask for leave, and wait until that is said."""
    before = len(network.said)
    await world.talk("ann:vigil:main").outside(ask(("shell", {"command": "ls build"})))
    await network.until(before + 1)


async def until_rejected(world: World) -> None:
    """Wait until ann's verdict was heard, and all that was said about it is settled."""
    talk = world.talk("ann:vigil:main")
    await talk.until(lambda: any(t.text.startswith("Rejected") for t in talk.said))
    heard = [m for m in talk.log if m.subject == talk.key.in_user]
    assert b'"text":"reject ' in heard[-1].data
    await talk.until(lambda: len(talk.receipts) == len(talk.said))


async def try_all(world: World, network: ChatNetwork, who: str, steps: list[Step]) -> None:
    """Have somebody write each text, while the network fails as it says."""
    talk = world.talk("ann:vigil:main")
    for text, behaviours, outcome, arrived in steps:
        before, closed = len(network.said), len(talk.receipts)
        network.behaviours[:] = behaviours
        await network.write(who, text)
        await talk.until(lambda: len(talk.receipts) > closed)  # noqa: B023
        found = talk.receipts[-1].outcome, len(network.said) - before
        assert found == (outcome, arrived), (text, talk.receipts[-1])
        if arrived == PARTS_MAX:
            page = f"{PUBLIC_URL}/console/conversations/ann:vigil:main"
            assert f"\n\n… (cut; all of it: {page} )" in network.said[-1].text
    assert network.secret not in "".join(one.reason for one in talk.receipts)


async def check_revoked(world: World, channel: str, words: str) -> None:
    """Check what is told of an account whose token was taken back."""
    await until_told(world, "gateway", "hears", channel, "refused")
    hers = await world.gate.person("ann")
    tried = (await hers.post(f"/api/channels/{channel}/trials")).json()
    assert (tried["outcome"], words in tried["reason"]) == ("not_taken", True)
