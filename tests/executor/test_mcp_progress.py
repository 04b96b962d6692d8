"""How far a call of an MCP server is, told to whoever watches, and what a flood of that costs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.executor.tools.progress import PAUSE_S, TEXT_LENGTH_MAX
from tests.executor.test_mcp_servers import everything
from tests.support.mcp_client import KEY, Hands, nasty, on, sandbox
from tests.support.stack import settings_of, some_broker
from vigil.bus.bus import Bus
from vigil.settings import credentials

LONG = "every__trigger-long-running-operation"
FLOOD = 1500
"""More than the pace of a second, which the executor reads at once."""


class Watcher:
    """Hears what is told of calls, as the gateway does."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self._is_over = asyncio.Event()

    async def hear(self, message: Any) -> None:
        told = json.loads(message.data)
        assert message.subject == KEY.doing
        self.heard.append(told)
        if told["is_over"]:
            self._is_over.set()

    async def until_over(self) -> list[dict[str, Any]]:
        async with asyncio.timeout(20):
            await self._is_over.wait()
        return self.heard


@contextlib.asynccontextmanager
async def watched(home: Path, **servers: Any) -> AsyncIterator[tuple[Hands, Watcher]]:
    """Servers in their sandboxes, and somebody who watches the conversation."""
    watcher = Watcher()
    choice = await sandbox(is_off=all("url" in one for one in servers.values()))
    async with some_broker(home) as broker:
        settings = settings_of(home, mcp=servers)
        seed = credentials.load(settings.credentials, "gateway")
        gateway = await Bus.connect(broker.url, role="gateway", seed=seed)
        await gateway.listen("doing.*.*.*", watcher.hear)
        async with on(broker.url, settings, choice) as found:
            yield found, watcher
        await gateway.close()


@pytest.mark.parametrize("is_web", [pytest.param(False, marks=pytest.mark.long), True])
async def test_the_everything_server_tells_how_far_it_is(tmp_path: Path, is_web: bool) -> None:
    """X-1: over both transports; at the end nothing is left to be shown."""
    async with contextlib.AsyncExitStack() as stack:
        section = await stack.enter_async_context(everything(is_web=is_web))
        found, watcher = await stack.enter_async_context(watched(tmp_path, every=section))
        told = await found.carry_out(LONG, duration=1, steps=4)
        assert "completed" in told.content
        *heard, last = await watcher.until_over()
        assert {one["tool"] for one in heard} == {LONG}
        assert {one["total"] for one in heard} == {4.0}
        assert heard[0]["done"] == 1.0
        assert last["is_over"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_flood_of_it_costs_nothing(tmp_path: Path, era: str) -> None:
    """S12: so many are told as a person reads; what it answers comes, and others aren't kept from
    theirs. What can't be shown is left out, and nobody is told of a call after its end."""
    async with watched(tmp_path, nasty=nasty("marches", era), other=nasty(era)) as (found, watcher):
        begun_s = time.monotonic()
        march = asyncio.create_task(found.carry_out("nasty__march", count=FLOOD))
        async with asyncio.timeout(5):
            while not watcher.heard:
                await asyncio.sleep(0.01)
        assert (await found.call("other__add", a=1, b=2)).content == "3"
        assert (await march).content == f"marched {FLOOD}"
        told_max = (time.monotonic() - begun_s) / PAUSE_S + 3
        heard = await watcher.until_over()
        assert 2 <= len(heard) <= told_max
        assert heard[0]["text"].startswith("step 0 of <b>many</b>")
        assert all(len(one["text"]) <= TEXT_LENGTH_MAX for one in heard)
        assert not any("\u202e" in one["text"] or "\n" in one["text"] for one in heard)
        await found.call("nasty__poke")  # tells of the call before: late
        await found.call("nasty__add", a=1, b=1)
        assert watcher.heard[-1]["is_over"]
        assert sum(one["is_over"] for one in watcher.heard) == 1
