"""A stream as one piece of bytes, and back: the broker's own snapshots, with the consumers in them.

The format is the server's. It goes chunk by chunk, each answered before the next comes, so that
memory stays small. While a snapshot is taken the broker refuses to delete messages of that stream;
whoever deletes tries again.

Only the admin's credential may do this: who may restore may write any message into a stream
(CVE-2026-33222), so no service has the right.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg

from ..bus.bus import Bus
from ..errors import Unavailable, VigilError

CHUNK_BYTES: Final = 128 * 1024
SILENCE_S: Final = 30.0
"""How long the broker may take for one chunk; the first one costs a check of the whole stream."""


class SnapshotError(VigilError):
    """The broker refused to give a stream, or to take one."""


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """How much a stream held when its snapshot was taken."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the broker wants to know of a stream before it takes it back."""

    config: dict[str, Any]
    state: dict[str, Any]

    @property
    def summary(self) -> StreamState:
        return msgspec.convert(self.state, StreamState)


async def save(bus: Bus, stream: str, write: Callable[[bytes], None]) -> Snapshot:
    """Hand a snapshot of `stream` to `write`, chunk by chunk.

    Raises:
        SnapshotError: the broker gave up.
        Unavailable: it fell silent.
    """
    connection = bus.connection
    inbox = connection.new_inbox()
    chunks: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await connection.subscribe(inbox, cb=chunks.put)
    try:
        request = {"deliver_subject": inbox, "chunk_size": CHUNK_BYTES, "jsck": True}
        reply = await bus.api(f"STREAM.SNAPSHOT.{stream}", request, timeout=SILENCE_S)
        while data := await _next(stream, chunks):
            write(data)
        return Snapshot(config=reply["config"], state=reply["state"])
    finally:
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()


async def _next(stream: str, chunks: asyncio.Queue[Msg]) -> bytes:
    """Return the next chunk, answered; empty at the end."""
    try:
        async with asyncio.timeout(SILENCE_S):
            msg = await chunks.get()
    except TimeoutError as error:
        raise Unavailable(f"{stream}: the broker sent nothing for {SILENCE_S:g} s") from error
    status = (msg.headers or {}).get("Status", "")
    if not msg.data and status not in ("", "204"):
        why = (msg.headers or {}).get("Description", "")
        raise SnapshotError(f"{stream}: no snapshot: {why or status}")
    if msg.reply:
        await msg.respond(b"")
    return bytes(msg.data)


async def load(
    bus: Bus, stream: str, snapshot: Snapshot, chunks: Iterator[bytes], *, replicas: int = 1
) -> None:
    """Make `stream`, which must not exist, out of a snapshot.

    Raises:
        SnapshotError: the broker refused.
        Unavailable: it fell silent; whether the stream exists is unknown.
    """
    config = snapshot.config | {"num_replicas": replicas}
    request = {"config": config, "state": snapshot.state}
    reply = await bus.api(f"STREAM.RESTORE.{stream}", request, timeout=SILENCE_S)
    subject = reply["deliver_subject"]
    for chunk in chunks:
        _check(stream, await _send(bus, subject, chunk))
    _check(stream, await _send(bus, subject, b""))


async def _send(bus: Bus, subject: str, chunk: bytes) -> bytes:
    asking: Awaitable[Msg] = bus.connection.request(subject, chunk, timeout=SILENCE_S)
    try:
        return bytes((await asking).data)
    except (nats.errors.Error, TimeoutError) as error:
        raise Unavailable(f"the broker did not take a part of a stream: {error!r}") from error


def _check(stream: str, answer: bytes) -> None:
    if not answer:
        return
    error = msgspec.json.decode(answer, type=dict[str, Any]).get("error")
    if error:
        raise SnapshotError(f"{stream}: not restored: {error.get('description', error)}")
