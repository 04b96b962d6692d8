"""A conversation of many turns, with tools, follow-ups and recalled memories, for measuring what a
provider can cache of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from services.cortex.models import openai
from tests.support.chat_api import chat_api
from tests.support.messages_api import MessagesApi, Reply, fails, messages_api, says
from tests.support.messages_replies import said
from tests.support.prompt_cache import PromptCache, is_torn, signature_of
from tests.support.scripted_memory import found, scripted_memory, view
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.contracts import Usage
from vigil.memory.operations.recall import Recall, Recalled

ANSWER: Final = "That depends on the weather, on the trains and on who else comes along. " * 12
WIDE_TURN: Final = 10
"""The message that the model answers with many calls at once."""
WIDE_CALLS: Final = 15
MEMORIES: Final = 20
"""About as many as 1,000 tokens hold."""
TORN: Final = "The block is bound to a different conversation"
CHEAP: Final = "claude-haiku-5-5"
CONTEXT_TOKENS: Final = 60_000


class LongTalk:
    """The conversation, and the provider's server that it is had through."""

    def __init__(self, stack: Stack, api: MessagesApi, talk: Talk) -> None:
        self.stack = stack
        self.api = api
        self.talk = talk

    async def turn(self, number: int, more: str = "") -> list[Usage]:
        """Say something; return what the calls took that it is answered with."""
        before = len(self.talk.turns)
        text = f"message {number}: what shall we do about the {number}th of the month? {more}"
        await self.talk.ended(await self.talk.say(text))
        return [used for turn in self.talk.turns[before:] for used in turn.usage]


def _remember(question: Recall) -> Recalled:
    """Recall what differs from message to message."""
    salt = question.query[:12]
    texts = (f"{salt}: in {year} Ann went to the sea with Ben" for year in range(2000, 2026))
    return found(*[view(n, text) for n, text in enumerate(list(texts)[:MEMORIES])])


@contextlib.asynccontextmanager
async def long_talk(
    home: Path, now: Callable[[], float], remember: Callable[[Recall], Recalled] = _remember
) -> AsyncIterator[LongTalk]:
    """Run what it needs.

    Args:
        now: the provider's clock, in seconds.
        remember: what memory has on a message.
    """
    cache = PromptCache(now)

    def behave(body: dict[str, Any]) -> Reply:
        if is_torn(body):
            return fails(400, "invalid_request_error", error_message=TORN)
        usage = cache.usage_of(body) | {"output_tokens": 200}
        thought = {"type": "thinking", "thinking": "", "signature": signature_of(body)}
        reply = _answer(body)
        return msgspec.structs.replace(reply, blocks=(thought, *reply.blocks), usage=usage)

    model = {"main": "claude-sonnet-5-5", "cheap": CHEAP, "context_tokens": CONTEXT_TOKENS}
    async with (
        messages_api(behave) as api,
        _talk(home, api, api.url, remember, model=model) as long,
    ):
        yield long


@contextlib.asynccontextmanager
async def long_talk_with_openai(home: Path, model: str) -> AsyncIterator[LongTalk]:
    """Run the same by Chat Completions, with a server that takes the place of OpenAI's own."""
    cache = PromptCache(lambda: 0.0, lookback=1)

    def behave(body: dict[str, Any]) -> Reply:
        usage = cache.usage_of(body) | {"output_tokens": 200}
        return msgspec.structs.replace(_answer(body), usage=usage)

    (home / "key").write_text("sk-test")
    models = {"big": {"provider": "openai", "model": model, "api_key_file": "key"}}
    async with chat_api(behave) as api:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(openai, "API_URL", api.url)
            async with _talk(home, api, models=models, model={"main": "big"}) as found:
                yield found


@contextlib.asynccontextmanager
async def _talk(
    home: Path,
    api: MessagesApi,
    anthropic_url: str | None = None,
    remember: Callable[[Recall], Recalled] = _remember,
    **sections: Any,
) -> AsyncIterator[LongTalk]:
    sections["memory"] = {"recall_tokens": 1000}
    async with (
        running_stack(
            home, services=("cortex",), anthropic_base_url=anthropic_url, **sections
        ) as stack,
        scripted_memory(stack) as scripted,
    ):
        scripted.answer = remember
        yield LongTalk(stack, api, await Talk.open(stack, "ann:vigil:t1"))


def _answer(body: dict[str, Any]) -> Reply:
    """Schedule something in every other turn, much at once in one, and answer at length."""
    messages = said(body)
    if body.get("tools", [{}])[0].get("name") == "memory_save":
        return says("<summary>They talk about the days of the month.</summary>", chunk=200)
    asked = [b["text"] for b in messages[-1]["content"] if b["type"] == "text"]
    count = sum(message["role"] == "user" for message in messages)
    if not asked or int(asked[-1].split()[1].rstrip(":")) % 2:
        return says(ANSWER, chunk=400)
    wide = asked[-1].startswith(f"message {WIDE_TURN}:")
    arguments = {"delay_seconds": 86_400, "reason": "see whether they decided"}
    return Reply(
        blocks=tuple(
            {
                "type": "tool_use", "id": f"toolu_{count}_{n}", "name": "schedule_followup",
                "input": arguments,
            }
            for n in range(WIDE_CALLS if wide else 1)
        )
    )  # fmt: skip
