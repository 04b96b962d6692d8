"""Each adapter against llama.cpp's own server: it speaks both wires, each in its own way."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.cortex.core.cycles.report import SCHEMA as REPORT
from services.cortex.core.mind.decisions import SCHEMA as DECISIONS
from services.cortex.model import LanguageModel, ToolSpec
from services.cortex.profiles.planner import schema_of as plan_schema
from tests.cortex.asked import ask, fail, row, text_of, user
from tests.cortex.test_wires import SCHEMA, WAYS
from tests.support.llama_cpp import GREETING, JSON, WINDOW, llama_cpp, needs_llama_cpp
from tests.support.pictures import png
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.attachments.examine import examined
from vigil.contracts import AttachmentBlock, TextBlock, ToolResultBlock, ToolUseBlock

pytestmark = [needs_llama_cpp, pytest.mark.asyncio(loop_scope="module")]
BASES = {"anthropic": "", "openai": "/v1"}
SAY = ToolSpec(name="say", description="Say a word.", input_schema=SCHEMA)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with llama_cpp(tmp_path_factory.mktemp("llama")) as found:
        yield found


@pytest_asyncio.fixture(params=WAYS, loop_scope="module")
async def model(request: pytest.FixtureRequest, url: str) -> AsyncIterator[LanguageModel]:
    model = WAYS[request.param].to(url + BASES[request.param])
    yield model
    await model.close()


async def test_it_is_talked_with_and_calls_a_tool(model: LanguageModel) -> None:
    """C-9: what was sent before is read from its cache, and counted as that."""
    first = await ask(model, user("hello"), tools=())
    assert (text_of(first), first.stop_reason) == (GREETING, "end_turn")
    asked = await ask(model, user("please call"), tools=(SAY,))
    (call,) = asked.blocks
    assert isinstance(call, ToolUseBlock)
    assert (call.name, call.input, asked.stop_reason) == ("say", {"word": "ok"}, "tool_use")
    assert asked.usage.output_tokens > 0
    result = row("user", ToolResultBlock(tool_use_id=call.id, content="said"), source="tool")
    rows = [user("please call"), row("assistant", call), result]
    answered = await ask(model, *rows, tools=(SAY,), present="[Situation] noon")
    assert (text_of(answered), answered.stop_reason) == (GREETING, "end_turn")
    assert answered.usage.cache_read_tokens >= asked.usage.input_tokens
    assert answered.usage.input_tokens < 200
    cut = await ask(model, user("hello"), tools=(), max_tokens=2)
    assert (text_of(cut), cut.stop_reason) == ("Good morning,", "max_tokens")


async def test_it_answers_by_a_schema(model: LanguageModel) -> None:
    """As Chat Completions by a grammar; as Messages it ignores the schema, and is told it in words
    from the second time on."""
    answers = [text_of(await ask(model, tools=(), schema=SCHEMA)) for _ in range(2)]
    assert answers[-1] == JSON
    assert answers[0] in (JSON, GREETING)


@pytest.mark.parametrize(
    "schema", [plan_schema([]), REPORT, DECISIONS], ids=["plan", "report", "mind"]
)
async def test_it_takes_the_schemas_of_ours(url: str, schema: dict[str, Any]) -> None:
    """J-1, C-7, G-1: its grammar is made of them, so an answer begins as they say."""
    model = WAYS["openai"].to(url + BASES["openai"])
    answer = await ask(model, tools=(), schema=schema, max_tokens=20)
    await model.close()
    assert text_of(answer).startswith("{")
    assert not answer.lacks


async def test_what_it_refuses_is_of_the_request(model: LanguageModel) -> None:
    """It says 500 of an image that its model can't see: tried again, it would say so for ever."""
    error = await fail(model, rows=(user("x" * WINDOW),), tools=())
    assert (error.kind, error.is_retryable, error.limit_tokens) == ("too_long", False, WINDOW)
    assert "reads at most 4,096 tokens at once" in error.reason
    file = examined("a.png", data := png(3, 5))
    seen = row("user", TextBlock(text="see?"), AttachmentBlock(file=file))
    files = {file.hash: base64.b64encode(data).decode()}
    error = await fail(model, rows=(seen,), tools=(), files=files)
    assert (error.kind, error.is_retryable, error.is_refused) == ("422", False, True)
    assert "image input is not supported" in error.reason


@pytest.mark.parametrize("provider", WAYS)
async def test_a_window_that_holds_not_even_the_tools_is_told_in_words(
    tmp_path: Path, url: str, provider: str
) -> None:
    """I-4: it understands all tools, but its 4096 tokens are less than those and a prompt take."""
    row = {"provider": provider, "model": "tiny", "base_url": url + BASES[provider]}
    async with running_stack(
        tmp_path, ("cortex", "delivery"), model={"main": "m"}, models={"m": row}
    ) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: bool(talk.texts))
        await talk.close()
    (told,) = talk.texts
    assert "what I have to tell the model beside the conversation takes about" in told
    assert "which reads at most 4,096 tokens at once" in told
