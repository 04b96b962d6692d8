"""GET /api/tools: what agents can be offered, as the executor publishes it (SPEC X-1).

One shelf for each source: the executor itself, and each MCP server. What a session is offered of
it depends on its kind, and whether a call may run on who began it; that is decided elsewhere.
"""

from __future__ import annotations

from typing import Final

import msgspec
import structlog
from fastapi import Response

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import Shelf, decode_pins, decode_shelf
from vigil.errors import InvalidInput

from ..http.routes import Caller, Json, Shared
from ..http.wire import Answer

log = structlog.get_logger("vigil.gateway")

STREAM: Final = "KV_TOOLS"
PINS: Final = "PINS"
_ALL: Final = "$KV.TOOLS.>"
_OPERATION: Final = "KV-Operation"
"""On what is left of an entry that was deleted."""


class ToolList(Answer, frozen=True, kw_only=True):
    """The tools there are, by source; `held` are those that aren't offered before a person
    approved them, `problem` tells why a source offers less than it could."""

    sources: tuple[Shelf, ...]
    approved: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Source -> tool that is held back -> what it said of itself when it was approved; empty: it
    is new."""


async def list_tools(edge: Shared, _: Caller) -> Response:
    """List the tools there are by source, with their risk; and what is held back, and why."""
    sources = await shelves(edge.bus)
    approved = {one.source: await _approved(edge.bus, one) for one in sources if one.held}
    return Json(ToolList(sources=sources, approved=approved))


async def _approved(bus: Bus, shelf: Shelf) -> dict[str, str]:
    """Return what the tools of a source that are held back said when they were approved."""
    entry = await KeyValue(bus, PINS).get(shelf.source)
    try:
        pins = {} if entry is None else decode_pins(entry.value).tools
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=0, error=str(error))
        pins = {}
    said = {one.name: pins[one.name].description for one in shelf.held if one.name in pins}
    return {one.name: said.get(one.name, "") for one in shelf.held}


async def shelves(bus: Bus) -> tuple[Shelf, ...]:
    """Return what each source offers, by name. Raises: Unavailable, BusError."""
    found: list[Shelf] = []
    for message in await bus.read(STREAM, [_ALL]):
        if _OPERATION in message.headers:
            continue
        try:
            found.append(decode_shelf(message.data))
        except InvalidInput as error:
            log.warning(
                "unreadable", action="gateway.unreadable", seq=message.seq, error=str(error)
            )
    return tuple(sorted(found, key=lambda shelf: shelf.source))
