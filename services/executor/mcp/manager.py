"""All MCP servers and others' agents of the configuration, brought up, and exchanged when it
changes.

Sections ``[mcp.NAME]`` and ``[a2a.NAME]`` that came, went or changed are started, ended or started
anew, and no other server notices.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from vigil.background.end import end_tasks
from vigil.runtime import Context
from vigil.settings.config import Settings
from vigil.settings.live.followed import FollowedSettings
from vigil.settings.servers import McpServer, ToolServer

from ..sandbox.choice import Choice
from ..tools.source import Registrar
from ..workspace.disk import Disk
from .pin_bucket import Pinning
from .sign_ins import SignIns

if TYPE_CHECKING:
    from .server import ServerTools

log = structlog.get_logger("vigil.executor.mcp")

SETTLE_S: Final = 5.0
"""How long the start waits for servers; those that come later are offered then."""


class Servers:
    """The servers there are; programs among them run in the sandbox of `choice`."""

    def __init__(self, context: Context, registrar: Registrar, choice: Choice, disk: Disk) -> None:
        self._context = context
        self._registrar = registrar
        self._choice = choice
        self._room = disk
        self._servers: dict[str, ServerTools] = {}
        self._pinning = Pinning(context.bus, self._approved)
        self._followed = FollowedSettings(context.settings, self._reread)
        self._sign_ins = SignIns(context.settings.home)
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def __getitem__(self, name: str) -> ServerTools:
        return self._servers[name]

    async def start(self) -> None:
        """Start what is configured, and wait a little for it."""
        await self._pinning.start()
        await self.apply(self._context.settings.config.tool_servers)
        self._tasks = [
            self._context.beside(self._followed.follow(), "mcp-config"),
            self._context.beside(
                self._sign_ins.follow(self._signed_in_to, self._signed_in), "mcp-sign-ins"
            ),
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                for server in list(self._servers.values()):
                    await server.is_settled.wait()

    async def close(self) -> None:
        """End all."""
        await end_tasks(*self._tasks)
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        await self._pinning.close()

    async def apply(self, wanted: Mapping[str, ToolServer]) -> None:
        """Have exactly these servers."""
        async with self._changing:
            await self._apply({name: one for name, one in wanted.items() if one.is_enabled}, ())

    async def _apply(self, wanted: Mapping[str, ToolServer], anew: Collection[str]) -> None:
        gone = [
            name
            for name, server in self._servers.items()
            if name in anew or wanted.get(name) != server.config
        ]
        ended = [self._servers.pop(name) for name in gone]
        for server in ended:
            if server.name not in wanted:
                self._registrar.remove(server.name)
        await asyncio.gather(*(server.close() for server in ended))
        for name, one in wanted.items():
            if name not in self._servers:
                self._servers[name] = server = self._made(name, one)
                server.start()

    async def _reread(self, read: Settings) -> None:
        await self.apply(read.config.tool_servers)

    def _sections(self) -> dict[str, ToolServer]:
        return {name: server.config for name, server in self._servers.items()}

    def _signed_in_to(self) -> dict[str, McpServer]:
        sections = self._sections().items()
        return {name: one for name, one in sections if isinstance(one, McpServer)}

    async def _signed_in(self, names: list[str]) -> None:
        async with self._changing:
            await self._apply(self._sections(), names)

    def _made(self, name: str, one: ToolServer) -> ServerTools:
        from .server import ServerTools  # the SDK takes 20 MiB, and most have no server

        return ServerTools(
            name, one, self._context, self._registrar, self._pinning, self._choice, self._room
        )

    def _approved(self, name: str) -> None:
        if name in self._servers:
            self._servers[name].restock()
