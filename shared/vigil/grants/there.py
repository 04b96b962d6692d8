"""Whether there is a tool that a grant names. Pure.

A grant of a tool that nobody offers would never let anything through, and look as if it did. What
is configured but not there now may be granted all the same: a server that is down, or a tool of
Vigil's own that waits for a mailbox. What a server offers is known only while it is connected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ..contracts import Shelf
from ..errors import InvalidInput
from ..words.nearest import meant

BUILTIN: Final = "builtin"
"""The source of Vigil's own tools."""
CONNECTED: Final = "connected"
"""The state that the shelf of a server tells while what it offers is known."""
SOMETIMES: Final = (
    *("calendar_cancel", "calendar_change", "calendar_create", "calendar_find", "calendar_list"),
    *("contact_find", "email_draft", "email_read", "email_search", "email_send"),
    *("shell", "web_search"),
)
"""Tools of Vigil's own that are offered where what they need is configured."""


def check_there(tool: str, shelves: Iterable[Shelf], configured: Collection[str]) -> None:
    """Refuse a tool that there isn't, naming the one that is near.

    Args:
        tool: as a grant says it: ``shell``, ``server__tool``, or ``server__*``.
        shelves: what each source offers; without Vigil's own nobody can tell, and all may be.
        configured: names of the servers of vigil.toml.

    Raises:
        InvalidInput: nobody offers it, nor is anybody configured who might.
    """
    there = {one.source: one for one in shelves}
    if BUILTIN not in there:
        return
    server, is_servers, _ = tool.partition("__")
    if not is_servers:
        own = {*SOMETIMES, *_offered(there[BUILTIN])}
        if tool not in own:
            known = sorted(own.union(*map(_offered, there.values())))
            raise InvalidInput(
                "tool", f"there is no tool {tool!r} that needs leave{meant(tool, known)}"
            )
        return
    servers = sorted({*configured, *there} - {BUILTIN})
    if server not in servers:
        raise InvalidInput("tool", f"there is no server {server!r}{meant(server, servers)}")
    shelf = there.get(server)
    is_known = shelf is not None and shelf.facts.get("state") == CONNECTED
    if shelf is None or not is_known or tool.endswith("*"):
        return
    offered = sorted(_offered(shelf))
    if tool not in offered:
        raise InvalidInput("tool", f"{server} has no tool {tool!r}{meant(tool, offered)}")


def _offered(shelf: Shelf) -> set[str]:
    return {one.name for one in shelf.tools} | {one.name for one in shelf.held}
