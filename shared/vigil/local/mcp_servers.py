"""MCP servers as people add them: what is written of one, how each is, and what it gets to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ..contracts import Shelf
from ..net.ssrf import ANYWHERE, target_of
from ..settings.servers import McpServer, ToolServer

OWN: Final = "builtin"
"""The shelf of Vigil's own tools, which is none of a server."""
SIGN_IN: Final = "`vigil mcp sign-in"
"""Stands in the problem of a server that lets nobody in who hasn't signed in."""
FETCHING: Final = ("npx", "uvx", "bunx", "pipx", "pnpx")
"""Programs that run others, which they fetch if they aren't there."""


def section_of(**wanted: Any) -> dict[str, Any]:
    """Return the section of a server: what was said of it, and nothing of what wasn't.

    >>> section_of(url="https://a.example/mcp", env={}, network=False)
    {'url': 'https://a.example/mcp'}

    Raises:
        RequestRefused: naming `url`: none can be asked there, or it has a password.
    """
    if wanted.get("url"):
        target_of(wanted["url"], ANYWHERE)
    return {key: value for key, value in wanted.items() if value}


def needs_network(command: str, *, network: bool) -> bool:
    """Return whether a program fetches what it runs, and may not.

    >>> needs_network("/usr/bin/npx", network=False), needs_network("npx", network=True)
    (True, False)
    """
    return not network and Path(command).name in FETCHING


def state_of(server: ToolServer | None, shelf: Shelf | None) -> str:
    """Return how a server is, in a word or two; None: it isn't configured, or isn't there.

    >>> state_of(McpServer(url="https://a.example"), None), state_of(None, None)
    ('not started', 'not configured')
    """
    if server is None:
        return "not configured"
    if not server.is_enabled:
        return "off"
    return "not started" if shelf is None else shelf.facts.get("state", "unknown")


def runs(server: McpServer) -> str:
    """Return what a server is, without what may be secret: its program's name, or its host.

    >>> runs(McpServer(command="/usr/bin/npx", args=("-y", "x"))), runs(McpServer(url="https://u:p@a.example/k"))
    ('npx', 'a.example')
    """
    return urlsplit(server.url).hostname or "" if server.url else Path(server.command).name
