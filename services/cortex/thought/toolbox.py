"""The tools that the executor offers, as its sources publish them in the bucket TOOLS.

What is on a shelf was written by others, so it is looked at once more before a model is shown it:
no source may offer a tool under the name of another's, and a name or a schema that the model's
server refuses would make every request fail, not only those that use it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue, Watch
from vigil.contracts import Shelf, Tool, decode_shelf
from vigil.contracts.calls.caller import CALLER
from vigil.errors import InvalidInput

from ..core.draft.profile import Profile
from ..core.tools.arguments import FOREIGN
from ..core.tools.search import arguments
from .tools import Offered, offered_to

log = structlog.get_logger("vigil.cortex")

BUILTIN: Final = "builtin"
"""The source of the executor's own tools."""
TOOLS_MAX: Final = 128
"""Tools that a model is shown, besides those of the core and of memory."""
BYTES_MAX: Final = 256 * 1024
"""Of their names, descriptions and schemas together."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the Messages API takes for the name of a tool."""


class Toolbox:
    """What is offered now, kept up to date by a watch."""

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}
        self._tools: dict[str, Tool] = {}
        self._offered: dict[Profile, Offered] = {}
        self._watch: Watch | None = None

    @classmethod
    async def watch(cls, bus: Bus) -> Toolbox:
        """Return a toolbox that knows what is offered now, and follows each change."""
        toolbox = cls()
        toolbox._watch = await KeyValue(bus, "TOOLS").watch(toolbox.on_change)
        return toolbox

    @property
    def tools(self) -> dict[str, Tool]:
        """What is offered, by name; a new dict after each change, never a changed one."""
        return self._tools

    def offered(self, profile: Profile) -> Offered:
        """Return what a session of this kind is offered; the same order until it changes."""
        found = self._offered.get(profile)
        if found is None:
            found = self._offered[profile] = offered_to(profile, self._tools)
        return found

    def on_change(self, source: str, value: bytes | None) -> None:
        """Take in what a source offers now; None: nothing any more."""
        shelf = None if value is None else _read(source, value)
        if shelf is None:
            self._shelves.pop(source, None)
        else:
            self._shelves[source] = shelf
        self._tools = _offered(self._shelves)
        self._offered = {}
        log.info("tools changed", action="cortex.tools", source=source, count=len(self._tools))

    async def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            await self._watch.close()


def _read(source: str, value: bytes) -> Shelf | None:
    """Return a shelf as it can be used: who can't be understood offers nothing."""
    try:
        shelf = decode_shelf(value)
    except InvalidInput as error:
        log.error("shelf unreadable", action="cortex.shelf", source=source, error=str(error))
        return None
    fit = tuple(tool for tool in shelf.tools if _is_fit(source, tool))
    if len(fit) < len(shelf.tools):
        names = [tool.name[:80] for tool in shelf.tools if tool not in fit]
        log.warning("tools left out", action="cortex.tool_refused", source=source, tools=names[:20])
    return msgspec.structs.replace(shelf, tools=fit)


def _is_fit(source: str, tool: Tool) -> bool:
    """Whether a tool may be offered under its name, and the model's server takes it."""
    is_own = FOREIGN not in tool.name
    if is_own != (source == BUILTIN) or tool.name in arguments() or source == CALLER:
        return False
    if not is_own and not tool.name.startswith(f"{source}{FOREIGN}"):
        return False
    is_object = tool.input_schema.get("type", "object") == "object"
    return is_object and _NAME.fullmatch(tool.name) is not None


def _offered(shelves: dict[str, Shelf]) -> dict[str, Tool]:
    """Return the tools of all shelves, the executor's own first, as many as there is room for.

    By name, whatever the order in which a source lists them: a provider's cache holds them so.
    """
    offered: dict[str, Tool] = {}
    left = BYTES_MAX
    for source in sorted(shelves, key=lambda name: (name != BUILTIN, name)):
        for tool in sorted(shelves[source].tools, key=lambda tool: tool.name):
            size = len(msgspec.json.encode((tool.name, tool.description, tool.input_schema)))
            if len(offered) < TOOLS_MAX and size <= left:
                offered[tool.name] = tool
                left -= size
    return offered
