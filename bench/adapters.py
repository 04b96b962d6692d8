"""What an adapter costs a call over its SDK alone: same request, same server, in turn."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from bench.numbers import percentile, report
from services.cortex.model import LanguageModel, ModelRequest, Situation
from services.cortex.models import chat, messages
from services.cortex.models.anthropic import AnthropicModel
from services.cortex.models.openai import OpenAIModel
from services.cortex.thought.tools import specs
from tests.support.chat_api import chat_api
from tests.support.messages_api import messages_api, says
from vigil.contracts import Row, TextBlock

CALLS: Final = 150
ROWS: Final = 40
"""Of the history, each of a few sentences."""
WORDS: Final = "That depends on the weather, on the trains and on who else comes along. " * 4
MODEL: Final = "claude-test"
NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Ways(NamedTuple):
    """Two ways to one answer."""

    adapter: LanguageModel
    bare: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[None]]
    """Of what `bare` holds."""


def anthropic(url: str, request: ModelRequest) -> Ways:
    """Messages, by Anthropic's SDK."""
    client = AsyncAnthropic(api_key="none", base_url=url, max_retries=0)
    body = messages.body_of(MODEL, request)

    async def bare() -> object:
        async with client.messages.stream(**body, timeout=request.timeout_s) as stream:
            return await stream.get_final_message()

    return Ways(AnthropicModel(MODEL, api_key="none", base_url=url), bare, client.close)


def openai(url: str, request: ModelRequest) -> Ways:
    """Chat Completions, by OpenAI's SDK."""
    client = AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    body = chat.body_of(MODEL, request, is_own=True)

    async def bare() -> object:
        async with await client.chat.completions.create(
            **body, timeout=request.timeout_s
        ) as stream:
            return [chunk async for chunk in stream]

    return Ways(OpenAIModel(MODEL, api_key="none", base_url=url), bare, client.close)


WIRES: Final = {"anthropic": (anthropic, messages_api), "openai": (openai, chat_api)}
"""Name of an adapter -> both ways of asking, and a server that speaks its wire."""


async def measure(_: Path) -> None:
    """Report the median of what the adapter adds to a call, for each adapter."""
    asked = request()
    for name, (ways_of, running) in WIRES.items():
        async with running(lambda _: says(WORDS)) as server:
            bare_ms, adapter_ms = await _taken(ways_of(server.url, asked), asked)
        added = [more - less for more, less in zip(adapter_ms, bare_ms, strict=True)]
        bare = round(percentile(bare_ms, 50), 3)
        report("adapter_overhead_ms", median(added), "ms", adapter=name, bare_p50_ms=bare)


async def _taken(ways: Ways, asked: ModelRequest) -> tuple[list[float], list[float]]:
    """Return what each call took, in ms: by the SDK alone, and by the adapter."""
    bare_ms, adapter_ms = [], []
    for _ in range(CALLS):
        bare_ms.append(await _timed(ways.bare()))
        adapter_ms.append(await _timed(ways.adapter.answer(asked, lambda _: None)))
    await ways.adapter.close()
    await ways.close()
    return bare_ms, adapter_ms


async def _timed(answer: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await answer
    return (time.perf_counter() - begun) * 1000


def request() -> ModelRequest:
    """Return what is asked: a conversation with all of the core's tools."""
    turns = [("user", "person"), ("assistant", "agent")] * (ROWS // 2) + [("user", "person")]
    rows = tuple(
        Row(role=role, source=source, blocks=(TextBlock(text=WORDS),), at=NOW)  # type: ignore[arg-type]
        for role, source in turns
    )
    return ModelRequest(
        session_key="ann:vigil:t1",
        system=(WORDS * 10,),
        rows=rows,
        tools=specs(),
        max_tokens=1000,
        timeout_s=60,
        situation=Situation(
            now=NOW, timezone="UTC", user="ann", agent="vigil", follow_ups={},
            autonomy_enabled=True,
        ),
        present=WORDS,
    )  # fmt: skip
