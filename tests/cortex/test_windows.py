"""A model's window that is smaller than configured: learned from how its server refuses (I-4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from services.cortex.model import TOO_LONG, LanguageModel
from services.cortex.models.inbound.overlong import limit_of
from tests.cortex.asked import ask, fail
from tests.cortex.test_wires import Way, api, model, way
from tests.support.messages_api import MessagesApi, Reply, fails, says
from tests.support.messages_replies import said
from tests.support.stack import running_stack
from tests.support.talk import Talk
from tests.support.too_long import ANTHROPIC, FORMS, VLLM, Form

__all__ = ["api", "model", "way"]

WINDOW: Final = 16_000
SUMMARY: Final = "Ann counts."
LONG: Final = "so it is " * 600
by_one_way = pytest.mark.parametrize(
    "way", ["anthropic", pytest.param("openai", marks=pytest.mark.long)], indirect=True
)
"""How each wire tells is tried by itself; what comes of it is the same by each."""


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_a_refusal_for_its_length_is_understood(
    api: MessagesApi, model: LanguageModel, form: Form
) -> None:
    """By each wire, in the words of each server; what is refused costs nothing."""
    api.window, api.too_long = 100, form
    error = await fail(model)
    assert (error.kind, error.is_retryable, error.is_refused) == (TOO_LONG, False, True)
    api.window = WINDOW
    assert (await ask(model)).blocks
    message = form.told(20_000, 5_000, WINDOW).error_message
    assert limit_of(message, (form.type, form.code)) == (
        WINDOW if "{window}" in form.message else 0
    )


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens",
        "messages.0.content: too long a name",
        "Rate limit reached: 30000 tokens per minute",
        "tools.0.name: String should have at most 128 characters",
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a maximum length of 40",
    ],
)
def test_other_refusals_are_not_taken_for_it(message: str) -> None:
    assert limit_of(message, ("invalid_request_error", "string_above_max_length")) == -1


def behave(body: dict[str, Any]) -> Reply:
    if [tool["name"] for tool in body.get("tools", [])] == ["memory_save"]:
        return says(f"<summary>{SUMMARY}</summary>")
    usage = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": 10}
    return says(f"re: {str(said(body)[-1]['content'][-1]['text'])[:12]}", usage=usage)


async def test_a_window_smaller_than_configured_is_learned(
    tmp_path: Path, way: Way, api: MessagesApi
) -> None:
    """I-4: the history is summed up and the model asked again, with nothing lost and nothing said
    of it; from then on no request is too long, in no session. What is too long alone is told in
    plain words, and the thread goes on after it."""
    api.behave, api.window = behave, WINDOW
    api.too_long = ANTHROPIC if way.name == "anthropic" else VLLM
    models = {"m": {"provider": way.name, "model": "model-test", "base_url": api.url}}
    async with running_stack(
        tmp_path, ("cortex", "delivery"), model={"main": "m"}, models=models
    ) as stack:
        ann, ben = [await Talk.open(stack, f"{one}:vigil:t") for one in ("ann", "ben")]
        for talk in (ann, ben):
            asked = [f"{number:2}: {LONG}" for number in range(14)]
            for text in asked:
                await talk.ended(await talk.say(text))
            await talk.until(lambda talk=talk: len(talk.texts) == 14)
            assert talk.texts == [f"re: {text[:12]}" for text in asked]
            assert SUMMARY in {turn.summary for turn in talk.turns}
            assert api.refused == 1
        notes = [note.code for turn in ann.turns for note in turn.notes]
        assert notes.count("model_overlong") == 1
        assert "compacted" in notes

        await ann.ended(await ann.say("a book: " + "word " * 20_000))
        await ann.ended(await ann.say("shorter"))
        await ann.until(lambda: len(ann.texts) == 16)
        told, after = ann.texts[-2:]
        assert "this is too long for the model, which reads at most 16,000 tokens at once" in told
        assert "400" not in told
        assert after == "re: shorter"
        for talk in (ann, ben):
            await talk.close()


@by_one_way
async def test_room_is_made_without_a_summary_and_without_a_number(
    tmp_path: Path, way: Way, api: MessagesApi
) -> None:
    """I-4: the server says not how much is too much, and its model sums nothing up: the oldest half
    goes, and each message is answered."""
    api.window, api.too_long = WINDOW, FORMS["ollama"]

    def answered(body: dict[str, Any]) -> Reply:
        reply = behave(body)
        return fails(500) if SUMMARY in str(reply.blocks) else reply

    api.behave = answered
    models = {"m": {"provider": way.name, "model": "model-test", "base_url": api.url}}
    async with running_stack(
        tmp_path, ("cortex", "delivery"), model={"main": "m"}, models=models
    ) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        for number in range(16):
            await talk.ended(await talk.say(f"{number:2}: {LONG}"))
        await talk.until(lambda: len(talk.texts) == 16)
        assert talk.texts == [f"re: {number:2}: so it is" for number in range(16)]
        notes = [note.code for turn in talk.turns for note in turn.notes]
        assert {"model_overlong", "compaction_failed", "compacted_unread"} <= set(notes)
        assert api.refused <= 2, "what was refused once isn't sent again"
        await talk.close()


@by_one_way
async def test_a_look_back_that_is_too_long_is_asked_once(
    tmp_path: Path, way: Way, api: MessagesApi
) -> None:
    """M-4: what the pause offers to memory isn't the history: no room made there would help."""
    api.behave = behave
    paused = {"recall_tokens": 0, "pause_s": 1.0}
    models = {"m": {"provider": way.name, "model": "model-test", "base_url": api.url}}
    async with running_stack(
        tmp_path, ("cortex", "scheduler"), model={"main": "m"}, models=models, memory=paused
    ) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        for number in range(3):
            await talk.ended(await talk.say(f"{number:2}: {LONG}"))
        api.window = 100
        await talk.until(
            lambda: "model_failed" in [note.code for turn in talk.turns for note in turn.notes]
        )
        assert api.refused == 1
        assert talk.turns[-1].state.loop is None
        await talk.close()
