"""Where tools come from: the executor's own, and MCP servers and others' agents as configured."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from vigil.runtime import Context
from vigil.settings.config import Config

from .builtin import Builtin
from .mcp.manager import Servers
from .tools.registry import Registry

BUILTIN = "builtin"
Start = Callable[[Context, Registry], AbstractAsyncContextManager[Builtin | None]]
"""Brings up sources, makes them known, and closes them at the end; returns the executor's own,
if they are among them."""


def expected(config: Config) -> frozenset[str]:
    """Return the names of the sources that there may be by this configuration."""
    return frozenset(
        (BUILTIN, *(name for name, one in config.tool_servers.items() if one.is_enabled))
    )


@contextlib.asynccontextmanager
async def start(context: Context, registry: Registry) -> AsyncIterator[Builtin]:
    """Start all that is configured. Raises: ConfigError."""
    builtin = await Builtin.open(context, registry.offered)
    registry.set(builtin)
    servers = Servers(context, registry, builtin.choice, builtin.disk)
    try:
        await servers.start()
        yield builtin
    finally:
        await servers.close()
        await builtin.close()
