"""A connection to another program's agent, kept up as one to an MCP server is.

There is nothing to hold open: what is kept is that its card can be read, and says what it said.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from vigil import distribution
from vigil.contracts.tools import ServerAnswer
from vigil.errors import Unavailable

from ...tools.source import CallTask, OnProgress
from ..connection import KeptConnection, McpUnclear, Wire
from ..web import McpEndpoint

if TYPE_CHECKING:
    from .client import AgentClient


class AgentWay:
    """The way to an agent."""

    problem = ""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint

    def connect(self) -> AbstractAsyncContextManager[Any]:
        try:
            from .client import opened  # the SDK is an extra
        except ModuleNotFoundError as error:
            raise Unavailable(
                f"this needs {error.name}: {distribution.command_for('a2a')}"
            ) from error
        return opened(self._endpoint)


class A2aConnection(KeptConnection["AgentClient"]):
    """An agent that speaks A2A."""

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        timeout_s: float,
        answered: ServerAnswer | None = None,
        on_progress: OnProgress | None = None,
        task: CallTask | None = None,
    ) -> Any:
        agent = self._there()
        try:
            return await agent.ask(tool, arguments, timeout_s)
        except (McpUnclear, Unavailable):
            self._list_soon()
            raise

    def _connected(self, wire: Wire) -> AbstractAsyncContextManager[AgentClient]:
        return wire.connect()

    async def _list(self, client: AgentClient, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            found, facts = await client.read_card()
        await self._on_listed(found, facts)
