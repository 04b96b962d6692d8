"""/api/tools: what agents can be offered, as the executor publishes it (SPEC X-1), and approving
what is held back.

One shelf for each source: the executor itself, and each MCP server. What a session is offered of
it depends on its kind, and whether a call may run on who began it; that is decided elsewhere.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Depends, Path, Response

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import Shelf, decode_pins, decode_shelf
from vigil.errors import InvalidInput
from vigil.subjects import check_part
from vigil.trust import pins

from ..callers import Admin, Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import PART_SCHEMA, Answer, RequestBody

log = structlog.get_logger("vigil.gateway")

STREAM: Final = "KV_TOOLS"
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


class ToolApproval(RequestBody, frozen=True, kw_only=True):
    """Let tools that are held back be offered, as they are now."""

    tools: Annotated[dict[str, str], msgspec.Meta(min_length=1)]
    """The name of each -> the `digest` of what was read of it: nothing else is approved."""


class ToolsApproved(Answer, frozen=True, kw_only=True):
    """What of a server may be offered from now on."""

    source: str
    tools: tuple[str, ...]


async def list_tools(edge: Shared, _: Caller) -> Response:
    """List the tools there are by source, with their risk; and what is held back, and why."""
    sources = await shelves(edge.bus)
    approved = {one.source: await _approved(edge.bus, one) for one in sources if one.held}
    return Json(ToolList(sources=sources, approved=approved))


async def _approved(bus: Bus, shelf: Shelf) -> dict[str, str]:
    """Return what the tools of a source that are held back said when they were approved."""
    entry = await KeyValue(bus, pins.BUCKET).get(shelf.source)
    try:
        known = {} if entry is None else decode_pins(entry.value).tools
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=0, error=str(error))
        known = {}
    said = {one.name: known[one.name].description for one in shelf.held if one.name in known}
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


async def approve_tools(
    edge: Shared,
    caller: Admin,
    source: Annotated[
        str,
        Path(alias="name", description="NAME of [mcp.NAME]", json_schema_extra=PART_SCHEMA),
    ],
    wanted: Annotated[ToolApproval, Depends(body_of(ToolApproval))],
) -> Response:
    """Approve what tools of an MCP server say of themselves now; 409 if it's something else than
    was read. Needs an admin token."""
    held = {one.name: one for one in await pins.held_of(edge.bus, check_part("source", source))}
    if strange := sorted(wanted.tools.keys() - held.keys()):
        raise Problem(404, f"nothing of that name is held back: {strange[0][:100]}", field="tools")
    changed = sorted(name for name, digest in wanted.tools.items() if held[name].digest != digest)
    if changed:
        raise Problem(409, f"{changed[0]} has changed since it was read; read it again")
    tools, now = [held[name] for name in wanted.tools], edge.clock.now()
    await pins.approve(edge.bus, source, tools, now)
    names = tuple(sorted(wanted.tools))
    log.info("tools approved", action="gateway.pins", by=caller.user, source=source, tools=names)
    return Json(ToolsApproved(source=source, tools=names))


_APPROVALS: Final = "/api/tools/{name}/approvals"
_REFUSED: Final = (403, 404, 409, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", "/api/tools", list_tools, {200: ToolList}, (503,)),
    Endpoint("POST", _APPROVALS, approve_tools, {200: ToolsApproved}, _REFUSED, ToolApproval),
)
