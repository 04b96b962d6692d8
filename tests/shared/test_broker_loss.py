"""The broker goes away while a service starts: a line in the log, and another try."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from tests.support.stack import running_broker, settings_of
from vigil import runtime
from vigil.broker.process import Broker
from vigil.errors import ConfigError, Unavailable
from vigil.local.home import ensure_home
from vigil.settings.config import Settings
from vigil.settings.sections import Nats
from vigil.topology import SERVICES

PIECES = dict.fromkeys(SERVICES, 6) | {"scheduler": 5}
"""Connected, and asked for what a service begins with: several of its parts wait for answers."""


class Relay:
    """A way to the broker that breaks after so many pieces of what the broker sends."""

    def __init__(self, pieces: int) -> None:
        self._port = 0
        self._left = pieces
        self.has_broken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @contextlib.asynccontextmanager
    async def running(self, port: int) -> AsyncIterator[str]:
        self._port = port
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        own = self._server.sockets[0].getsockname()[1]
        try:
            yield f"nats://127.0.0.1:{own}"
        finally:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(asyncio.CancelledError):  # the test is over
            await self._join(reader, writer)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there[1], counts=False))
                group.create_task(self._pass(there[0], writer, counts=True))
        except* (ConnectionError, EOFError):
            pass
        finally:
            for one in (writer, there[1]):
                one.close()

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counts: bool
    ) -> None:
        while data := await source.read(65536):
            if counts and not self.has_broken.is_set():
                if self._left == 0:
                    self.has_broken.set()
                    raise ConnectionError
                self._left -= 1
            target.write(data)
            await target.drain()
        raise EOFError


async def start(service: str, settings: Settings, url: str, ready: asyncio.Event) -> None:
    await runtime.keep_running(service, settings, url, on_ready=lambda _: ready.set())


@pytest.mark.parametrize("service", SERVICES)
async def test_a_loss_in_the_middle_of_a_start_is_outlived(service: str, tmp_path: Path) -> None:
    """X-5: whatever parts of the service noticed, it tries again, works, and tells no traceback."""
    settings = settings_of(tmp_path)
    ensure_home(settings)
    relay = Relay(PIECES[service])
    with structlog.testing.capture_logs() as logs:
        async with running_broker(tmp_path) as broker, relay.running(broker.port) as url:
            ready = asyncio.Event()
            task = asyncio.create_task(start(service, settings, url, ready))
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait({task, waiting}, return_when="FIRST_COMPLETED", timeout=60)
            assert ready.is_set(), task
            assert relay.has_broken.is_set()
            task.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)
    ours = [one for one in logs if one["action"] != "broker.says"]  # it saw half a handshake
    assert [one for one in ours if one["log_level"] == "error" or "exc_info" in one] == []


async def test_what_is_no_loss_still_ends_a_service(tmp_path: Path) -> None:
    """X-5: a fault beside it is a fault."""
    lost, fault = Unavailable("no answer"), ValueError("ours")
    assert runtime.of_broker(ExceptionGroup("", [lost, ExceptionGroup("", [lost])])) == "no answer"
    assert runtime.of_broker(ExceptionGroup("", [lost, fault])) == ""
    assert runtime.of_broker(ConfigError("wrong")) == ""


async def test_a_loss_is_told_once_however_often_it_is_tried_again(tmp_path: Path) -> None:
    """X-7: ten tries a second to connect again are not ten lines a second for each service."""
    tries = 0
    enough = asyncio.Event()

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        writer.close()
        if tries == 5:
            enough.set()

    async with running_broker(tmp_path) as broker:
        bus = await broker.admin()
        again = asyncio.Event()
        bus.on_restart("test", again.set)
        with structlog.testing.capture_logs() as logs:
            await broker.stop()
            server = await asyncio.start_server(refuse, "127.0.0.1", broker.port)
            await asyncio.wait_for(enough.wait(), 30)
            server.close()
            other = Broker(Nats(port=broker.port), home=tmp_path)
            await other.start()
            await asyncio.wait_for(again.wait(), 30)
        await bus.close()
        await other.stop()
    told = [one for one in logs if one.get("action") == "bus.error"]
    assert 1 <= len(told) <= 2, told
