"""A world whose agent has an account with a server of Matrix, and people who write to it there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.support.mailing import until_told
from tests.support.matrix_server import Correspondent, MatrixServer
from tests.support.pauses import pauses
from tests.support.talk import PATIENCE_S
from tests.support.world import World, running_world
from vigil.bus.bus import Bus
from vigil.channels import pairs
from vigil.channels.pairs import ChannelPerson, PairedAddress
from vigil.clock import Clock

T = TypeVar("T")
CHANNEL: Final = "chat"
LOOK_S: Final = 0.1
"""A look costs the server a hundredth of a second."""


def section(server: MatrixServer, agent: Correspondent, **changes: Any) -> dict[str, Any]:
    """Return `[channels.chat]` of an account."""
    return {
        "kind": "matrix",
        "homeserver": server.url,
        "user_id": agent.user,
        "access_token": agent.token,
        "sync_s": 5.0,
        "backoff_base_s": 0.05,
    } | changes


async def pair(
    bus: Bus, user: str, address: str, room: str = "", *, channel: str = CHANNEL
) -> None:
    """Pair an id as its owner's code would."""
    new = PairedAddress(address=address, at=datetime.now(UTC), room=room)
    await pairs.store_paired(bus, ChannelPerson(user=user, channel=channel, addresses=(new,)))


async def until(look: Callable[[], T]) -> T:
    """Wait until a look at a server, which takes a while, finds something."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses(LOOK_S)
        while not (found := await asyncio.to_thread(look)):
            await asyncio.sleep(next(pause_s))
        return found


class Chat:
    """The account of the agent, and what is said in rooms with it."""

    def __init__(
        self,
        world: World,
        server: MatrixServer,
        agent: Correspondent,
        spare: Correspondent | None = None,
    ) -> None:
        self.world = world
        self.server = server
        self.agent = agent
        self.spare = spare

    @property
    def facts(self) -> dict[str, Any]:
        """What the gateway's health tells of the account."""
        found: dict[str, Any] = self.world.stack.contexts["gateway"].facts["hears"][CHANNEL]
        return found

    async def room_of(self, who: Correspondent) -> str:
        """Have somebody make a room with the agent; returns it once the agent is in it."""
        room = await asyncio.to_thread(who.create, self.agent.user, is_direct=True)
        await until(lambda: self.agent.user in who.members(room))
        return room

    async def heard(self, who: Correspondent, room: str, count: int) -> list[dict[str, Any]]:
        """Wait until the agent has said so much in a room; returns all that it said."""

        def look() -> list[dict[str, Any]]:
            found = [one for one in who.messages(room) if one["sender"] == self.agent.user]
            return found if len(found) >= count else []

        return await until(look)


@contextlib.asynccontextmanager
async def running_matrix_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: MatrixServer,
    *,
    prefers: str = "",
    clock: Clock | None = None,
    spare: str = "",
    has_mind: bool = False,
    **changes: Any,
) -> AsyncIterator[Chat]:
    """All services with an account, and another where `spare` names a channel for it."""
    names = [CHANNEL, *([spare] if spare else [])]
    agents = [await asyncio.to_thread(server.account, "vigil") for _ in names]
    sections: dict[str, dict[str, Any]] = {
        "channels": {
            name: section(server, one, **changes) for name, one in zip(names, agents, strict=True)
        },
        "person": {"channel": prefers},
    }
    if has_mind:
        sections["mind"] = {"enabled": True}
    async with running_world(home, monkeypatch, clock, has_hands=has_mind, **sections) as world:
        for name in names:
            await until_told(world, "gateway", "hears", name, "listening")
        yield Chat(world, server, *agents)
