"""A memory operation of one file: over the bus, HTTP and MCP, for a model, and in the client."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from services.cortex.core.draft.kinds import profile_of
from services.cortex.thought import tools as model_tools
from services.cortex.thought.tools import offered_to
from services.gateway import app
from services.memory.answers import HANDLERS, Answering, Via
from tests.support.memories import Session, asking
from tests.support.remembering import running_memories, save
from vigil.errors import InvalidInput
from vigil.memory import operation, operations
from vigil.memory.operations.list import ListMemories
from vigil.sdk.client import Client
from vigil.subjects import Scope

WORD = {"word": "tea"}
CACHED = (model_tools.specs, app.served, app.described, app.document)


def forget_all() -> None:
    """Have everybody look again at what operations there are."""
    operation.forget_registered()
    for cached in CACHED:
        cached.cache_clear()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The toy lies in the folder of the operations, and the memory service has a handler for it."""
    place = str(Path(__file__).parent / "operations")
    monkeypatch.setattr(operations, "__path__", [*operations.__path__, place])
    module = importlib.import_module("vigil.memory.operations.count_word")

    async def count(answering: Answering, scope: Scope, question: Any, via: Via) -> Any:
        listed = await answering.replica.store.list(scope, ListMemories(), answering.now)
        having = [one for one in listed.memories if question.word in one.content]
        return module.WordCounted(count=len(having))

    monkeypatch.setitem(HANDLERS, module.CountWord, count)
    forget_all()
    yield module
    forget_all()


async def test_one_file_is_an_operation_everywhere(toy: Any, tmp_path: Path) -> None:
    """M-8, P-5"""
    async with running_memories(tmp_path) as gate:
        token = await gate.token("ann")
        ann = await gate.http(token)
        for content in ("Ann drinks tea", "Bob brings tea", "Cleo sleeps"):
            await save(ann, content)
        counted = {"count": 2}

        over_bus = await (await asking(gate.stack)).ask(toy.CountWord(**WORD))
        assert over_bus == toy.WordCounted(count=2)

        assert (await ann.get("/api/memories/count", params=WORD)).json() == counted
        refused = await ann.get("/api/memories/count", params={"wurd": "tea"})
        assert refused.status_code == 422
        document = (await ann.get("/openapi.json")).json()
        shown = document["paths"]["/api/memories/count"]["get"]
        assert shown["operationId"] == "count_word"
        assert "word" in [one["name"] for one in shown["parameters"]]

        client = Client(f"http://127.0.0.1:{gate.port}", token)
        assert await asyncio.to_thread(client.ask_memory, "count", WORD) == counted
        with pytest.raises(InvalidInput, match="wurd: is no field of count"):
            client.ask_memory("count", {"wurd": "tea"})

        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=10) as http:
            way = streamable_http_client(f"http://127.0.0.1:{gate.port}/mcp", http_client=http)
            async with McpClient(way) as mcp:
                assert (await mcp.call_tool("memory_count", WORD)).structured_content == counted

        session = Session(gate.admin)
        assert (await session.call("count_word", WORD)).payload.content == '{"count":2}'


@pytest.mark.usefixtures("toy")
def test_a_model_is_offered_its_tool() -> None:
    """M-8"""
    (spec,) = [one for one in offered_to(profile_of("channel"), {}).all if one.name == "count_word"]
    assert spec.description == "Count the memories that have a word."
    assert spec.input_schema["required"] == ["word"]
    assert [
        one for one in offered_to(profile_of("look_back"), {}).all if one.name == "count_word"
    ] == []
