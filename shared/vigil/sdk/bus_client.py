"""A program outside, on the bus: publishes events and follows signals. asyncio, over NATS.

`vigil token create --bus --json` prints what `connect` takes. Everything else that a program may
do is on the HTTP API (:class:`vigil.Client`). What this does is a few calls of nats-py, which a
program in any language can make as well (docs/clients.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from nats.js.errors import APIError

from ..bus.connection import Connection
from ..contracts import Signal, decode_signal
from ..errors import InvalidInput, OutcomeUnknown, Unavailable
from ..texts.trouble import reason_of
from .formats.cloud_event import cloud_event

TIMEOUT_S: Final = 5.0
BATCH: Final = 100
PULL_S: Final = 5.0


class BusCredential(msgspec.Struct, frozen=True, kw_only=True):
    """What `vigil token create --bus --json` prints; other fields are ignored."""

    url: str
    seed_file: str
    publish: str
    """The one subject that it may publish to."""
    inbox_prefix: str
    stream: str
    consumer: str
    """Its durable consumer of signals."""
    domain: str


class BusClient:
    """One connection with a bus credential. Use it as ``async with await BusClient.connect(…)``."""

    def __init__(self, connection: Connection, credential: BusCredential) -> None:
        self._nc = connection
        self._credential = credential

    @classmethod
    async def connect(cls, credential: Mapping[str, Any] | BusCredential) -> BusClient:
        """Connect with what `vigil token create --bus --json` printed.

        Raises:
            InvalidInput: that is no credential, or its seed can't be read.
            Unavailable: no broker answers there, or it refuses the seed.
        """
        try:
            known = msgspec.convert(credential, BusCredential, from_attributes=True)
            seed = await asyncio.to_thread(Path(known.seed_file).read_text, "utf-8")
        except (msgspec.ValidationError, OSError) as error:
            raise InvalidInput("credential", reason_of(error)) from error
        connection = Connection()
        try:
            async with asyncio.timeout(2 * TIMEOUT_S):
                await _connect(connection, known, seed.strip())
        except (TimeoutError, OSError, nats.errors.Error) as error:
            what = f"no broker at {known.url} takes this credential"
            raise connection.unavailable(error, what) from error
        return cls(connection, known)

    async def publish_event(
        self,
        session_key: str,
        kind: str,
        data: Any,
        *,
        source: str,
        event_id: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Tell a session something; returns the event's own id, once it is stored.

        With the same `source` and `event_id` it may be repeated, which is what to do if the
        outcome is unknown. Raises: OutcomeUnknown, Unavailable.
        """
        id_ = event_id or str(uuid.uuid4())
        event = cloud_event(
            session_key, kind, data, source=source, id_=id_, occurred_at=occurred_at
        )
        try:
            answer = await self._nc.request(
                self._credential.publish, msgspec.json.encode(event), timeout=TIMEOUT_S
            )
        except (TimeoutError, nats.errors.TimeoutError) as error:
            raise OutcomeUnknown("the broker did not answer in time") from error
        except nats.errors.Error as error:
            raise Unavailable(f"not stored: {reason_of(error)}") from error
        if problem := msgspec.json.decode(answer.data).get("error"):
            raise Unavailable(f"not stored: {problem.get('description')}")
        return id_

    async def signals(self) -> AsyncIterator[Signal]:
        """Yield signals for good, from the last one that was acknowledged on.

        One is acknowledged when the next is asked for, so a program that ends in the middle gets
        it again: a signal may come twice, with the same `id`.
        """
        known = self._credential
        stream = self._nc.jetstream(domain=known.domain)
        subscription = await stream.pull_subscribe_bind(known.consumer, known.stream)
        try:
            while True:
                for message in await _fetched(subscription):
                    yield decode_signal(message.data)
                    await message.ack()
        finally:
            with contextlib.suppress(nats.errors.Error):
                await subscription.unsubscribe()

    async def close(self) -> None:
        """Send what is left to send, then disconnect."""
        with contextlib.suppress(nats.errors.Error, TimeoutError, OSError):
            await self._nc.flush(timeout=2)
        await self._nc.close()

    async def __aenter__(self) -> BusClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _connect(connection: Connection, known: BusCredential, seed: str) -> None:
    await connection.connect(
        known.url,
        nkeys_seed_str=seed,
        inbox_prefix=known.inbox_prefix.encode(),
        max_reconnect_attempts=-1,
        error_cb=_ignore,
    )


async def _ignore(error: Exception) -> None:
    """Errors of the connection reach the caller by what it waits for."""


async def _fetched(subscription: JetStreamContext.PullSubscription) -> list[Msg]:
    """Return the next messages; none if nothing came for some seconds, or the broker is away."""
    try:
        return await subscription.fetch(BATCH, timeout=PULL_S)
    except (TimeoutError, nats.errors.TimeoutError):
        return []
    except (nats.errors.Error, APIError):
        await asyncio.sleep(1.0)  # it reconnects by itself
        return []
