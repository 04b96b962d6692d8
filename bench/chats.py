"""A channel to a chat network: what saying something costs over the bare library, and what an
account costs in which nothing comes. Real Synapse; the gateway alone, in this process."""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from nio import AsyncClient, RoomSendResponse

from bench.numbers import report
from tests.support.chats import CHANNEL, pair, section
from tests.support.matrix_server import MatrixServer, missing, running_matrix_server
from tests.support.stack import Stack, running_stack
from vigil.channels.answers import Taken
from vigil.channels.contract import ChannelContext
from vigil.channels.matrix.section import MatrixAccount
from vigil.channels.matrix.sender import MatrixSender
from vigil.clock import SystemClock
from vigil.contracts import Said

SENDS: Final = 200
IDLE_S: Final = 30.0
SETTLED_S: Final = 5.0
TEXT: Final = "Bring Bruno in from the balcony: it **freezes** tonight."


async def measure(home: Path) -> None:
    """Report the overhead of a send, and of waiting."""
    if missing():
        return
    with running_matrix_server() as server:
        bare = await _idle(home / "bare", server, {})
        agent = server.account("vigil")
        one = await _idle(home / "one", server, {CHANNEL: section(server, agent, sync_s=30.0)})
        more = (one - bare) * 100
        bare_pct = round(bare * 100, 3)
        report("channel_idle_cpu_pct", more, "% of a core", aim="< 0.5", bare=bare_pct)
        await _measure_sends(home / "sends", server)


async def _measure_sends(home: Path, server: MatrixServer) -> None:
    agent, ann = server.account("vigil"), server.account("ann")
    room = ann.create(agent.user)
    agent.join(room)
    account = MatrixAccount(homeserver=server.url, user_id=agent.user, access_token=agent.token)
    home.mkdir()
    async with running_stack(home, (), SystemClock()) as stack:
        bus = await stack.bus("admin")
        await pair(bus, "ann", ann.user, room)
        context = ChannelContext(name=CHANNEL, home=home, clock=SystemClock(), bus=bus)
        sender, client = MatrixSender(account, context), AsyncClient(server.url, agent.user)
        client.access_token = agent.token
        ours: list[float] = []
        theirs: list[float] = []
        for number in range(SENDS):
            theirs.append(await _bare(client, room, number))
            ours.append(await _own(sender, number))
        await sender.close()
        await client.close()
    overhead = (statistics.median(ours) - statistics.median(theirs)) * 1000
    bare_ms = round(statistics.median(theirs) * 1000, 2)
    report("channel_send_overhead_ms", overhead, "ms", bare_library_ms=bare_ms, sends=SENDS)


async def _bare(client: AsyncClient, room: str, number: int) -> float:
    begun = time.perf_counter()
    content = {"msgtype": "m.text", "body": TEXT}
    answer = await client.room_send(room, "m.room.message", content, tx_id=f"bare{number}")
    assert isinstance(answer, RoomSendResponse)
    return time.perf_counter() - begun


def said_of(number: int) -> Said:
    """Return a message, which is each time another."""
    return Said(
        id=f"{number:032x}",
        session_key="ann:vigil:main",
        text=TEXT,
        at=SystemClock().now() + timedelta(seconds=1),
        caused_by="",
        turn_seq=0,
    )


async def _own(sender: MatrixSender, number: int) -> float:
    said = said_of(number)
    begun = time.perf_counter()
    assert isinstance(await sender.send(said, 1), Taken)
    return time.perf_counter() - begun


async def _idle(home: Path, server: MatrixServer, channels: dict[str, Any]) -> float:
    """Return the part of a core that the gateway takes as it waits."""
    home.mkdir()
    async with running_stack(home, ("gateway",), SystemClock(), channels=channels) as stack:
        if channels:
            await until_heard(stack)
        await asyncio.sleep(SETTLED_S)
        begun, begun_at = cpu_s(), time.monotonic()
        await asyncio.sleep(IDLE_S)
        return (cpu_s() - begun) / (time.monotonic() - begun_at)


async def until_heard(stack: Stack) -> None:
    """Wait until the account is read."""
    facts = stack.contexts["gateway"].facts
    while facts.get("hears", {}).get(CHANNEL, {}).get("state") != "listening":
        await asyncio.sleep(0.05)


def cpu_s() -> float:
    """Return what this process has used of a core."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
