"""A real broker and real services, in this process, on free ports, ended with the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support import lent, provisioned
from tests.support.replaying import assert_replayed
from vigil import runtime
from vigil.broker.process import Broker
from vigil.broker.provision import provision
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.local.home import ensure_home
from vigil.settings import config, credentials
from vigil.settings.config import Settings
from vigil.settings.sections import Nats, Retention

READY_S: Final = 60.0
"""After which a service has failed to start, also on a machine with ten times as much to do."""


def settings_of(
    home: Path, anthropic_base_url: str | None = None, **sections: dict[str, Any]
) -> Settings:
    """Build settings: ``settings_of(home, autonomy={"cooldown_ms": 100})``."""
    raw: dict[str, Any] = {
        "gateway": {"port": 0, "disk_free_bytes_min": 0},
        "nats": {"partitions": provisioned.ONE_LOG.partitions},
        "autonomy": {"enabled": True},
        # Off, but where they are the subject.
        "cortex": {
            "autonomy_enabled": False,
            "bulletin_synthesis": False,
            "summary_rewriting": False,
        },
        "mind": {"enabled": False},
        "model": {"main": "rehearsal", "rehearsal_word_ms": 0},
        # Off, but for the tests that are about it.
        "memory": {"recall_tokens": 0, "pause_s": 0, "warm_wait_s": 0},
    }
    for section, values in sections.items():
        raw[section] = raw.get(section, {}) | values
    return Settings(config=config.read(raw), home=home, anthropic_base_url=anthropic_base_url)


@contextlib.asynccontextmanager
async def running_broker(
    home: Path, nats: Nats | None = None, retention: Retention | None = None
) -> AsyncIterator[Broker]:
    """A provisioned nats-server of its own, with one credential per service."""
    nats, retention = nats or provisioned.ONE_LOG, retention or Retention()
    broker = Broker(nats, home=home, retention=retention)
    is_new = not (home / "nats").exists()
    if is_new:
        (await provisioned.stored(retention, nats.partitions)).copy(home / provisioned.DATA)
    try:
        await broker.start()
        admin = await broker.admin()
        await (provisioned.complete(admin) if is_new else provision(admin, retention, nats))
        await admin.close()
        yield broker
    finally:
        # Nobody reads what it stored after this: its goodbye would take 0.2 s. The watch says its
        # own before, or it would wait 2 s for an answer.
        await broker.unwatch()
        broker.kill()
        await broker.stop()


@contextlib.asynccontextmanager
async def some_broker(
    home: Path, nats: Nats = provisioned.ONE_LOG, retention: Retention | None = None
) -> AsyncIterator[Broker | lent.Lent]:
    """A lent account where that will do; a broker of one's own costs five times the CPU."""
    retention = retention or Retention()
    is_lent = lent.suits(home, nats, retention)
    async with lent.lent(home) if is_lent else running_broker(home, nats, retention) as broker:
        yield broker


class Stack:
    """Services running against a broker; kills and starts them one by one."""

    def __init__(
        self, broker: Broker | lent.Lent, settings: Settings, clock: Clock | None = None
    ) -> None:
        self.broker = broker
        self.settings = settings
        self.clock = clock
        self.contexts: dict[str, runtime.Context] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._buses: list[Bus] = []

    async def start(self, *names: str) -> None:
        """Start services (``"cortex"``, or ``"cortex:2"`` for a second replica)."""
        for name in names:
            ready = asyncio.Event()

            def on_ready(
                context: runtime.Context, name: str = name, ready: asyncio.Event = ready
            ) -> None:
                self.contexts[name] = context
                ready.set()

            task = asyncio.create_task(
                runtime.run(
                    name.partition(":")[0],
                    self.settings,
                    self.broker.url,
                    on_ready=on_ready,
                    clock=self.clock,
                ),
                name=name,
            )
            self._tasks[name] = task
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait({task, waiting}, return_when="FIRST_COMPLETED", timeout=READY_S)
            waiting.cancel()
            if not ready.is_set():
                if task.done():
                    task.result()
                raise TimeoutError(f"{name} did not become ready")

    async def stop(self, name: str) -> None:
        """End one service as SIGTERM would."""
        task = self._tasks.pop(name)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def bus(self, role: str) -> Bus:
        """Connect with a role's own credential ("admin" may do everything)."""
        seed = credentials.load(self.settings.credentials, role)
        bus = await Bus.connect(self.broker.url, role=role, seed=seed)
        self._buses.append(bus)
        return bus

    async def close(self) -> None:
        for name in list(self._tasks):
            await self.stop(name)
        for bus in self._buses:
            await bus.close()


@contextlib.asynccontextmanager
async def running_stack(
    home: Path,
    services: Sequence[str] = ("cortex", "scheduler", "delivery", "gateway"),
    clock: Clock | None = None,
    anthropic_base_url: str | None = None,
    **sections: dict[str, Any],
) -> AsyncIterator[Stack]:
    """A broker, of one's own or a lent account, with services, configured by sections."""
    settings = settings_of(home, anthropic_base_url, **sections)
    ensure_home(settings)
    nats, retention = settings.config.nats, settings.config.retention
    async with some_broker(home, nats, retention) as broker:
        stack = Stack(broker, settings, clock)
        try:
            await stack.start(*services)
            yield stack
            if "cortex" in services:
                await assert_replayed(await stack.bus("admin"), settings.config)
        finally:
            await stack.close()
