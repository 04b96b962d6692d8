"""The broker, as whoever runs an installation reaches it: with credentials of the home."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from vigil.local import runfile
from vigil.settings.config import Settings

from .. import exits

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

T = TypeVar("T")
States = Callable[[], dict[str, dict[str, Any]]]
"""Gives how each thing of a kind is, by its name."""
HEALTH_WAIT_S: Final = 1.0
REPLICAS_MAX: Final = 64
"""More of them than anybody runs: all that answer in time are heard."""


def url_of(settings: Settings) -> str:
    """Return where the broker is. Raises: NotReady, nothing runs."""
    run = runfile.running(settings.run_file)
    url = settings.config.nats.url or (run.nats_url if run else "")
    if not url:
        raise exits.NotReady("Vigil is not running: `vigil up` first, or set NATS_URL")
    return url


def run(settings: Settings, task: Callable[[Bus], Awaitable[T]]) -> T:
    """Do `task` with the credential that makes tokens. Raises: NotReady, ConfigError."""
    from vigil.bus.bus import Bus
    from vigil.settings import credentials

    async def main() -> T:
        url = url_of(settings)
        seed = credentials.load(settings.credentials, "operator")
        bus = await Bus.connect(url, role="operator", seed=seed)
        try:
            return await task(bus)
        finally:
            await bus.close()

    return asyncio.run(main())


def run_as_admin(settings: Settings, task: Callable[[Bus], Awaitable[T]]) -> T:
    """Do `task` with the credential that may change the broker. Raises: NotReady, ConfigError."""
    from vigil.local.home import connect_admin

    async def main() -> T:
        admin = await connect_admin(settings, url_of(settings))
        try:
            return await task(admin)
        finally:
            await admin.close()

    return asyncio.run(main())


def run_as_service(settings: Settings, service: str, task: Callable[[Bus], Awaitable[T]]) -> T:
    """Do `task` with the credential of a service. Raises: NotReady, ConfigError, Unavailable."""
    from vigil.bus.bus import Bus
    from vigil.settings import credentials

    async def main() -> T:
        seed = credentials.load(settings.credentials, service)
        bus = await Bus.connect(url_of(settings), role=service, seed=seed)
        try:
            return await task(bus)
        finally:
            await bus.close()

    return asyncio.run(main())


async def facts_of(bus: Bus, name: str) -> dict[str, dict[str, Any]]:
    """Return what the replicas tell of something with their health, by its name: of each channel
    who listens to it, of each mailbox who follows it."""
    from vigil.observe.health import HEALTH, Health

    found: dict[str, dict[str, Any]] = {}
    for data in await bus.ask_all(HEALTH, b"", count=REPLICAS_MAX, timeout=HEALTH_WAIT_S):
        found |= msgspec.json.decode(data, type=Health).facts.get(name, {})
    return found


def asked_once(settings: Settings, name: str) -> States:
    """Return what gives `facts_of`, and asks for them once. Raises: NotReady, ConfigError."""
    return functools.cache(lambda: run(settings, lambda bus: facts_of(bus, name)))


async def entries(bus: Bus, bucket: str) -> dict[str, bytes]:
    """Return what a bucket holds, by key."""
    from vigil.bus.kv import KeyValue

    found: dict[str, bytes | None] = {}
    watch = await KeyValue(bus, bucket).watch(found.__setitem__)
    await watch.close()
    return {key: value for key, value in found.items() if value is not None}
