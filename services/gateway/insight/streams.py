"""/api/streams: how large each stream of the broker is, and how far behind those who read it are.

For admins: sizes tell how much others do.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from fastapi import Response

from vigil.bus.bus import Bus, BusError
from vigil.contracts import Instant
from vigil.topology import CONSUMERS, STREAMS

from ..callers import Admin, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.wire import Answer

BEFORE_ALL: Final = "0001-"
"""How the broker's instant of the newest message begins if there is none."""


class StreamReader(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """Who takes what comes into a stream: all replicas of a service together."""

    name: str
    waiting: int
    """Messages that it hasn't been handed yet."""
    in_hand: int
    """Those that it was handed and hasn't dealt with."""
    again: int
    """Of those, how many it was handed more than once."""


class StreamView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A stream."""

    name: str
    messages: int
    bytes: int
    bytes_max: int | None
    """Null: as large as the disk lets it be."""
    newest_at: Instant | None
    readers: tuple[StreamReader, ...]


class StreamList(Answer, frozen=True, kw_only=True):
    """Streams; the log of the sessions may be in several."""

    streams: tuple[StreamView, ...]


async def list_streams(edge: Shared, _: Admin) -> Response:
    """List the broker's streams: size, and what waits for those who read. Needs an admin token."""
    layout = await edge.bus.layout()
    names = [(one.name, each) for one in STREAMS for each in layout.streams(one.name)]
    found = await asyncio.gather(*(_stream(edge.bus, stream, name) for stream, name in names))
    return Json(StreamList(streams=tuple(found)))


async def _stream(bus: Bus, stream: str, name: str) -> StreamView:
    durable = [one.name for one in CONSUMERS if one.stream == stream]
    info, *readers = await asyncio.gather(
        bus.api(f"STREAM.INFO.{name}", {}), *(_reader(bus, name, one) for one in durable)
    )
    return _view(name, info, [one for one in readers if one is not None])


async def _reader(bus: Bus, stream: str, name: str) -> StreamReader | None:
    """Return a reader; None: the broker doesn't know it, as after a part of an upgrade."""
    try:
        info = await bus.api(f"CONSUMER.INFO.{stream}.{name}", {})
    except BusError:
        return None
    return StreamReader(
        name=name,
        waiting=info["num_pending"],
        in_hand=info["num_ack_pending"],
        again=info["num_redelivered"],
    )


def _view(name: str, info: dict[str, Any], readers: list[StreamReader]) -> StreamView:
    state, newest, bytes_max = info["state"], info["state"]["last_ts"], info["config"]["max_bytes"]
    return StreamView(
        name=name,
        messages=state["messages"],
        bytes=state["bytes"],
        bytes_max=bytes_max if bytes_max > 0 else None,
        newest_at=None if newest.startswith(BEFORE_ALL) else datetime.fromisoformat(newest),
        readers=tuple(readers),
    )


ENDPOINTS: Final = (Endpoint("GET", "/api/streams", list_streams, {200: StreamList}, (403, 503)),)
