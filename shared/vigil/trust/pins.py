"""Which tools of an MCP server are held back, and approving them as they are now.

The executor offers a tool only as long as it says of itself what was approved; the command line and
the console approve. What was approved is in the bucket PINS, a record for each server.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from ..bus.bus import Bus
from ..bus.kv import KeyValue
from ..contracts import HeldTool, Pin, Pins, decode_pins, decode_shelf, encode

SHELVES: Final = "TOOLS"
BUCKET: Final = "PINS"


async def held_of(bus: Bus, server: str) -> tuple[HeldTool, ...]:
    """Return what of a server is held back at present. Raises: InvalidInput, it can't be read."""
    shelf = await KeyValue(bus, SHELVES).get(server)
    return () if shelf is None else decode_shelf(shelf.value).held


async def approve(bus: Bus, server: str, tools: Iterable[HeldTool], now: datetime) -> None:
    """Let tools be offered for as long as they say of themselves what they say here.

    Raises:
        InvalidInput: what was approved of the server can't be read.
        WrongLastSequence: somebody else approved something of it at this moment.
    """
    bucket = KeyValue(bus, BUCKET)
    entry = await bucket.get(server)
    pins = decode_pins(entry.value) if entry is not None else Pins(server=server)
    fresh = {
        one.name: Pin(digest=one.digest, at=now, by="operator", description=one.description)
        for one in tools
    }
    data = encode(Pins(server=server, tools=pins.tools | fresh))
    if entry is None:
        await bucket.create(server, data)
    else:
        await bucket.put(server, data, expect=entry.revision)
