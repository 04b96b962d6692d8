"""Programs outside of Vigil: a credential on a running broker, and a plain NATS client with it."""

from __future__ import annotations

import asyncio
from typing import Any

import nats
from nats.aio.client import Client

from tests.support.stack import Stack
from vigil.broker.provision import provision_outside
from vigil.broker.reload import reload
from vigil.bus.bus import Bus
from vigil.outside.programs import DOMAIN, Outside
from vigil.settings import credentials


async def admit(stack: Stack, user: str, name: str = "ci", *, is_admin: bool = False) -> Outside:
    """Make a credential and tell the running broker, as `vigil token create --bus` does."""
    made = credentials.make_outside(stack.settings.credentials, user, name, is_admin=is_admin)
    await provision_outside(await stack.bus("admin"), [made])
    await tell(stack)
    return made


async def tell(stack: Stack) -> None:
    """Have the running broker read its users again."""
    assert stack.broker.pid is not None
    await asyncio.to_thread(reload, stack.settings.home, stack.broker.pid)


async def are_taken_in(admin: Bus) -> bool:
    """Whether the gateway has acknowledged every event that was published until now.

    By sequences: what the broker has just stored it doesn't count as pending at once.
    """
    stream = await admin.api("STREAM.INFO.EVENTS", {})
    consumer = await admin.api("CONSUMER.INFO.EVENTS.gateway-events", {})
    return bool(consumer["ack_floor"]["stream_seq"] == stream["state"]["last_seq"])


class Program:
    """A plain nats-py connection; what the broker denied is in `denied`."""

    def __init__(self, credential: Outside) -> None:
        self.credential = credential
        self.denied: list[str] = []
        self.nc: Client
        self.js: Any

    async def connect(self, stack: Stack) -> Program:
        async def on_error(error: Exception) -> None:
            if "permissions violation" in str(error).lower():
                self.denied.append(str(error))

        seed = credentials.outside_seed(stack.settings.credentials, self.credential)
        self.nc = await nats.connect(
            stack.broker.url,
            nkeys_seed=str(seed),
            inbox_prefix=self.credential.inbox.encode(),
            error_cb=on_error,
            allow_reconnect=False,
        )
        self.js = self.nc.jetstream(domain=DOMAIN)
        return self

    async def settle(self) -> None:
        """Wait until the broker has answered everything sent before."""
        await self.nc.flush()
        await self.nc.flush()

    async def close(self) -> None:
        await self.nc.close()


async def connect(stack: Stack, credential: Outside) -> Program:
    """Connect with a credential, as its program would."""
    return await Program(credential).connect(stack)
