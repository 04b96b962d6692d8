"""Memories asked for over HTTP, for the MCP server of the command line (`vigil mcp`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ..sdk.client import Client
from . import wire

T = TypeVar("T")


class MemoriesOverHttp:
    """Calls the gateway with the token of a client, each call in a thread.

    Every method raises what `vigil.Client` does.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def save(self, body: wire.SaveBody) -> wire.SavedMemory:
        return await _told(
            wire.SavedMemory,
            lambda: self._client.save_memory(
                body.content,
                type=body.type,
                source=body.source,
                importance=body.importance,
                thread=body.thread_id,
                occurred_at=body.occurred_at,
                stability=body.stability,
                user=body.user_id,
                agent=body.agent_id,
            ),
        )

    async def look(self, wanted: wire.Look) -> wire.MemoryPage:
        given = msgspec.to_builtins(wanted) | {"type": ",".join(wanted.type) or None}
        return await _told(wire.MemoryPage, lambda: self._client.memory_page(given))

    async def get(self, whose: wire.Whose, id_: str) -> wire.MemoryDetail:
        return await _told(
            wire.MemoryDetail,
            lambda: self._client.memory(id_, user=whose.user_id, agent=whose.agent_id),
        )

    async def forget(self, whose: wire.Whose, id_: str) -> wire.ForgottenMemories:
        return await _told(
            wire.ForgottenMemories,
            lambda: self._client.forget(id_, user=whose.user_id, agent=whose.agent_id),
        )

    async def graph(self, wanted: wire.LookAround) -> wire.MemoryGraph:
        return await _told(
            wire.MemoryGraph,
            lambda: self._client.memory_graph(
                wanted.id,
                depth=wanted.depth,
                limit=wanted.limit,
                user=wanted.user_id,
                agent=wanted.agent_id,
            ),
        )


async def _told(kind: type[T], call: Callable[[], dict[str, Any]]) -> T:
    return msgspec.convert(await asyncio.to_thread(call), kind)
