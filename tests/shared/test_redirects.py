"""Whoever sends something private sends it where it was to go, and to nowhere that an answer names.

A server that is asked a question could hand it on: a model's the whole conversation, an embedder's
what is remembered, a collector's the keys in its headers.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

import services
import vigil
from services.cortex.models.anthropic import AnthropicModel
from services.cortex.models.openai import OpenAIModel
from services.memory.embedding.openai import OpenAIEmbedder
from services.memory.vectors.server import ServerIndex
from tests.cortex.asked import KEY, fail
from tests.support.receiver import running_receiver, status
from vigil.channels.answers import NotTaken
from vigil.channels.chats.calls import CallFailed
from vigil.channels.downloads import ELSEWHERE, Downloads
from vigil.channels.matrix.wire import Homeserver, NotReached
from vigil.channels.network_api import NetworkApi
from vigil.channels.telegram.wire import BotApi
from vigil.doctor import memory, search
from vigil.errors import InvalidInput, VigilError
from vigil.imports.aiogram import SendMessage
from vigil.observe import otlp, spans
from vigil.sdk.client import Client
from vigil.settings.config import Config, Settings
from vigil.settings.memory import MemorySection
from vigil.settings.sections import SearchSection

MAKERS: Final = {
    "AsyncAnthropic", "AsyncClient", "AsyncOpenAI", "AsyncQdrantClient", "ClientSession",
    "HTTPConnection", "HTTPSConnection", "OTLPSpanExporter", "build_opener",
    "from_base", "streamable_http_client", "urlopen",
}  # fmt: skip
"""What makes something that sends requests over HTTP."""
GUARDED: Final = {
    "shared/vigil/net/client.py": "webhooks, search, pages, MCP: tests/delivery/test_webhook.py, "
    "tests/executor/test_web_search.py, test_fetch.py, test_mcp_web.py",
    "services/executor/mcp/web.py": "tests/executor/test_mcp_web.py",
    "services/executor/mcp/agents/client.py": "tests/executor/test_a2a_agents.py",
}
"""Modules that are looked at elsewhere."""


async def _anthropic(url: str) -> None:
    model = AnthropicModel("m", api_key=KEY, base_url=url)
    error = await fail(model)
    assert "(308)" in error.reason
    assert not error.is_retryable
    await model.close()


async def _openai(url: str) -> None:
    model = OpenAIModel("m", api_key=KEY, base_url=f"{url}/v1")
    error = await fail(model)
    assert "(308)" in error.reason
    assert not error.is_retryable
    await model.close()


async def _embedder(url: str) -> None:
    embedder = OpenAIEmbedder(f"{url}/v1", "m", KEY)
    with pytest.raises(VigilError, match="308"):
        await embedder.embed(["My locker code is 4711."])
    await embedder.close()


async def _vectors(url: str) -> None:
    index = ServerIndex(url, KEY)
    with pytest.raises(VigilError):
        await index.open("m", 4)
    await index.close()


async def _collector(url: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        patched.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"api-key={KEY}")
        tracer = await otlp.tracer_for("gateway", "1")
        tracer.end(tracer.enter(None), spans.ACCEPT, {})
        await tracer.close()


async def _doctor(url: str) -> None:
    section = MemorySection(qdrant_url=url)
    settings = Settings(config=Config(memory=section), home=Path(), qdrant_api_key=KEY)
    found = await asyncio.to_thread(memory.qdrant, settings)
    assert found is not None
    assert "308" in found.found


async def _doctor_of_search(url: str) -> None:
    settings = Settings(config=Config(search=SearchSection(url=url)), home=Path())
    assert await asyncio.to_thread(search.search, settings) is not None


async def _sdk(url: str) -> None:
    with contextlib.suppress(VigilError):
        await asyncio.to_thread(Client(url, KEY).me)


async def _matrix(url: str) -> None:
    server = Homeserver(url, "", Path())
    with pytest.raises(NotReached, match="308"):
        await server.ask(KEY, ("PUT", "/_matrix/client/v3/rooms/x", "{}"), timeout_s=10)
    await server.close()


async def _telegram(url: str) -> None:
    api = BotApi("4711:secret", url)
    with pytest.raises(CallFailed, match="308") as failed:
        await api.call(SendMessage(chat_id=7, text="My locker code is 4711."), timeout_s=10)
    assert isinstance(failed.value.answer, NotTaken)
    await api.close()


async def _network(url: str) -> None:
    api = NetworkApi(url, "vigil/1")
    body = {"text": "My locker code is 4711."}
    with pytest.raises(CallFailed, match="308") as failed:
        await api.call("POST", "/chat", body, authorization=f"Bearer {KEY}", timeout_s=10)
    assert isinstance(failed.value.answer, NotTaken)
    with pytest.raises(CallFailed, match="308"):
        await api.socket(url, timeout_s=10, heartbeat_s=None)
    await api.close()


async def _file(url: str) -> None:
    files = Downloads()
    with pytest.raises(InvalidInput, match=ELSEWHERE):
        await files.get(f"{url}/files/1", 1000, headers={"authorization": f"Bearer {KEY}"})
    await files.close()


SENDERS: Final[dict[str, Callable[[str], Awaitable[None]]]] = {
    "services/cortex/models/anthropic.py": _anthropic,
    "services/cortex/models/completions.py": _openai,
    "services/memory/embedding/openai.py": _embedder,
    "services/memory/vectors/server.py": _vectors,
    "shared/vigil/channels/downloads.py": _file,
    "shared/vigil/channels/matrix/wire.py": _matrix,
    "shared/vigil/channels/network_api.py": _network,
    "shared/vigil/channels/telegram/wire.py": _telegram,
    "shared/vigil/observe/otlp.py": _collector,
    "shared/vigil/doctor/memory.py": _doctor,
    "shared/vigil/net/direct.py": _doctor_of_search,
    "shared/vigil/sdk/client.py": _sdk,
}
"""By the module that makes the client: has it send something."""


@pytest.mark.parametrize("name", SENDERS)
async def test_nothing_is_taken_to_where_an_answer_leads(name: str) -> None:
    """S9: neither the body nor the key, over either wire of models and all others."""
    async with running_receiver(status(200)) as other:
        away = f"http://127.0.0.1:{other.port}/"
        async with running_receiver(status(308, location=away)) as asked:
            await SENDERS[name](f"http://127.0.0.1:{asked.port}")
            assert asked.requests, "the control: it was asked"
        assert other.requests == []


def test_every_client_is_looked_at() -> None:
    """Who makes one tomorrow adds it above."""
    root = Path(vigil.__file__).parents[2]
    folders = [Path(vigil.__file__).parent, *map(Path, services.__path__)]
    found = {
        str(path.relative_to(root))
        for folder in folders
        for path in folder.rglob("*.py")
        if _makes_one(path)
    }
    assert found == {*SENDERS, *GUARDED} - {"shared/vigil/doctor/memory.py"}


def _makes_one(path: Path) -> bool:
    text = path.read_text("utf-8")
    if not any(f"{name}(" in text for name in MAKERS):
        return False
    called: Any = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(getattr(one, "attr", getattr(one, "id", "")) in MAKERS for one in called)
