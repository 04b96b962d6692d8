"""The broker of a home, reached as its admin, whether Vigil runs or not.

What runs is used as it is. If nothing runs and the broker is the embedded one, it is started for as
long as it is needed, under the lock of the home, so that nobody else starts it meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from ..broker.process import Broker
from ..broker.provision import provision
from ..bus.bus import Bus
from ..errors import ConfigError
from ..local import runfile
from ..local.home import connect_admin
from ..settings.config import Settings

Where = Literal["running", "started", "external"]


class Reached(msgspec.Struct, frozen=True):
    """A connection with the admin's credential, and whose broker it leads to.

    `running` and `started` are the embedded broker, whose files are in this home.
    """

    bus: Bus
    where: Where
    broker_pid: int = 0
    """Of the embedded broker."""


@contextlib.asynccontextmanager
async def admin(settings: Settings) -> AsyncIterator[Reached]:
    """Connect as the admin for as long as the block lasts.

    Raises:
        ConfigError: there is nothing in this home to be reached.
        AlreadyRunning: something else starts or works here right now.
        Unavailable: the broker does not answer.
    """
    async with contextlib.AsyncExitStack() as stack:
        url, where, pid = await _url(settings, stack)
        bus = await connect_admin(settings, url)
        stack.push_async_callback(bus.close)
        if where == "started":
            await provision(bus, settings.config.retention, settings.config.nats)
        yield Reached(bus, where, pid)


async def _url(settings: Settings, stack: contextlib.AsyncExitStack) -> tuple[str, Where, int]:
    if url := settings.config.nats.url:
        return url, "external", 0
    run = runfile.running(settings.run_file)
    if run is not None and run.nats_url:
        return run.nats_url, "running", run.broker_pid
    if not settings.broker_store.exists():
        raise ConfigError(f"there is nothing in {settings.home}: `vigil up` was never run there")
    lock = runfile.Lock(settings.run_file)
    lock.acquire()
    stack.callback(lock.release)
    config = settings.config
    broker = Broker(config.nats, home=settings.home, retention=config.retention)
    stack.push_async_callback(broker.stop)
    await broker.start()
    return broker.url, "started", broker.pid or 0
