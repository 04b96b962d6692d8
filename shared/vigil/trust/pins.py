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
        Unavailable: no answer from the broker, or others were always faster.
    """
    fresh = {
        one.name: Pin(digest=one.digest, at=now, by="operator", description=one.description)
        for one in tools
    }

    def approved(value: bytes | None) -> bytes:
        pins = decode_pins(value) if value else Pins(server=server)
        return encode(Pins(server=server, tools=pins.tools | fresh))

    await KeyValue(bus, BUCKET).revise(server, approved)
