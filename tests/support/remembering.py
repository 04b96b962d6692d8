"""A gateway beside a real memory service, and what a person does with them over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support.gateway import Gate, until
from tests.support.stack import running_stack

MEMORIES: Final = "/api/memories"


@contextlib.asynccontextmanager
async def running_memories(home: Path, **sections: dict[str, Any]) -> AsyncIterator[Gate]:
    """A gateway, a memory service and a broker, configured by sections."""
    async with running_stack(home, services=("memory", "gateway"), **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            yield gate
        finally:
            await gate.close()


async def save(client: httpx2.AsyncClient, content: str, **fields: Any) -> str:
    """Save a memory; return its id."""
    answer = await client.post(MEMORIES, json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def look(client: httpx2.AsyncClient, **query: Any) -> dict[str, Any]:
    """Recall, or list if there is no `q`."""
    answer = await client.get(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def contents(page: dict[str, Any]) -> list[str]:
    """Return what the memories of a page say."""
    return [memory["content"] for memory in page["memories"]]


async def until_vectors(client: httpx2.AsyncClient) -> None:
    """Wait until the vectors are as far as the text."""

    async def is_even() -> bool:
        stats = (await client.get(f"{MEMORIES}/stats")).json()
        return bool(stats["vectors_position"] >= stats["position"])

    await until(is_even, "the vectors caught up")
