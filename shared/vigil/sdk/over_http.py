"""Memories asked for over HTTP, for the MCP server of the command line (`vigil mcp`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from ..memory.operation import Operation, http_view
from ..memory.wire import Whose
from .client import Client


class MemoriesOverHttp:
    """Calls the gateway with the token of a client, each call in a thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, operation: Operation, whose: Whose, fields: Mapping[str, Any]) -> Any:
        """Ask for an operation. Raises: as `vigil.Client`."""
        answer = await asyncio.to_thread(
            self._client.ask_memory,
            operation.name,
            http_view(operation).given(fields),
            user=whose.user_id,
            agent=whose.agent_id,
        )
        return msgspec.convert(answer, operation.answer)
