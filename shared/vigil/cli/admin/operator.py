"""The broker, as whoever runs an installation reaches it: with credentials of the home."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from vigil.local import runfile
from vigil.settings.config import Settings

from .. import exits

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

T = TypeVar("T")


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


async def entries(bus: Bus, bucket: str) -> dict[str, bytes]:
    """Return what a bucket holds, by key."""
    from vigil.bus.kv import KeyValue

    found: dict[str, bytes | None] = {}
    watch = await KeyValue(bus, bucket).watch(found.__setitem__)
    await watch.close()
    return {key: value for key, value in found.items() if value is not None}
