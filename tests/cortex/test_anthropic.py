"""The Messages API: what only its adapter does, against a local server that speaks it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, get_args

import msgspec
import pytest

from services.cortex.core.conclusion import NO_WORDS_AFTER
from services.cortex.model import ModelAnswer, StopReason
from services.cortex.models.anthropic import AnthropicModel
from services.cortex.models.messages import EARLIER, NO_RESULT, messages_of
from services.cortex.thought.tools import specs
from tests.cortex.asked import KEY, ask, fail, row, text_of, user
from tests.cortex.driver import Driver
from tests.cortex.test_wires import SCHEMA
from tests.support.messages_api import MessagesApi, Reply, calls, fails, messages_api, says
from tests.support.messages_rules import breakpoints
from vigil.contracts import Block, OpaqueBlock, Row, TextBlock, ToolResultBlock, ToolUseBlock


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with messages_api() as server:
        yield server


@pytest.fixture
async def model(api: MessagesApi) -> AsyncIterator[AnthropicModel]:
    model = AnthropicModel("claude-test", api_key=KEY, base_url=api.url)
    yield model
    await model.close()


# ---------------------------------------------------------------- answers


async def test_the_request_is_what_the_api_wants(api: MessagesApi, model: AnthropicModel) -> None:
    """I-1: system in blocks; the tools; the key as a bearer token."""
    await ask(model)
    sent = api.requests[-1]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert sent.body["model"] == "claude-test"
    assert sent.body["max_tokens"] == 1000
    assert sent.body["stream"] is True
    assert sent.body["system"] == [
        {"type": "text", "text": "You are kind.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "You are Vigil.", "cache_control": {"type": "ephemeral"}},
    ]
    assert [tool["name"] for tool in sent.body["tools"]] == [spec.name for spec in specs()]
    assert all(tool["description"] for tool in sent.body["tools"])


async def test_what_changes_comes_last_and_the_rest_ends_in_breakpoints(
    api: MessagesApi, model: AnthropicModel
) -> None:
    """L-23: after the results of tools, too; in the history where the last request ended."""
    call = ToolUseBlock(id="c1", name="search", input={})
    result = row("user", ToolResultBlock(tool_use_id="c1", content="x"), source="tool")
    await ask(model, user("hi"), row("assistant", call), result, present="[Situation] noon")
    marked = [block.pop("cache_control") for block in breakpoints(api.last)]
    assert marked == [{"type": "ephemeral"}] * 4
    first, _, last = api.last["messages"]
    assert first["content"] == [{"type": "text", "text": "hi"}]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert last["content"][-1] == {"type": "text", "text": "[Situation] noon"}
    await ask(model, user("hi"), row("assistant", call), result, present="[Situation] noon")
    spots = [m["content"][0].get("cache_control") for m in api.last["messages"]]
    assert spots == [{"type": "ephemeral"}, None, {"type": "ephemeral"}]
    assert "cache_control" not in api.last["messages"][-1]["content"][-1]


async def test_effort_is_sent_to_models_that_take_it(api: MessagesApi) -> None:
    """L-24: the others would refuse the request."""
    for name, takes_it in (("claude-sonnet-5-5", True), ("claude-haiku-4-5", False), ("q3", False)):
        model = AnthropicModel(name, api_key=KEY, base_url=api.url)
        await ask(model, effort="low")
        assert api.last.get("output_config") == ({"effort": "low"} if takes_it else None)
        await ask(model)
        assert "output_config" not in api.last
        await model.close()


@pytest.mark.parametrize("status", [400, 422])
async def test_what_a_server_of_ones_own_refuses_is_left_out(api: MessagesApi, status: int) -> None:
    """One request more for each, once; nothing is left out for what is wrong with a request."""
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=api.url)
    refused = ["cache_control", "output_config.effort", "output_config"]

    def behave(body: dict[str, Any]) -> Reply:
        names = {"cache_control": breakpoints(body), "output_config": body.get("output_config")}
        names["output_config.effort"] = body.get("output_config", {}).get("effort")
        found = next((name for name in refused if names[name]), "")
        words = f"{found}: Extra inputs are not permitted"
        return fails(status, error_message=words) if found else says('{"word": "ok"}')

    api.behave = behave
    answer = await ask(model, schema=SCHEMA, effort="low")
    assert text_of(answer) == '{"word": "ok"}'
    assert answer.lacks == {"cache_control", "output_config.effort", "output_config.format"}
    assert len(api.requests) == 4
    assert json.dumps(SCHEMA) in api.last["system"][-1]["text"]
    await ask(model, effort="low")
    assert len(api.requests) == 5
    api.behave = lambda _: fails(status, error_message="cache_control: wrong")
    assert (await fail(model)).kind == str(status)
    assert len(api.requests) == 6
    await model.close()


async def test_an_unfinished_answer_goes_on_after_the_situation(
    api: MessagesApi, model: AnthropicModel
) -> None:
    await ask(model, user("hi"), row("assistant", TextBlock(text="Well")), present="[Situation] 1")
    assert [m["role"] for m in api.last["messages"]] == ["user", "assistant"]
    assert api.last["messages"][0]["content"][-1]["text"] == "[Situation] 1"


async def test_a_system_prompt_may_have_one_part_or_none(
    api: MessagesApi, model: AnthropicModel
) -> None:
    await ask(model, system=("", "Only this."), tools=())
    assert api.last["system"] == [
        {"type": "text", "text": "Only this.", "cache_control": {"type": "ephemeral"}}
    ]
    assert "tools" not in api.last
    await ask(model, system=())
    assert "system" not in api.last


async def test_a_paused_turn_goes_on_from_what_the_provider_did(
    api: MessagesApi, model: AnthropicModel
) -> None:
    """Its own tool's call goes back as it came, and gets its result in the answer that follows; in
    later requests both are there, and a call that nothing came of is left out."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    search = {
        "type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"},
    }  # fmt: skip
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    for ending in ((found, {"type": "text", "text": "Found it."}), ()):
        made: list[ModelAnswer] = []
        driver = Driver(lambda _, made=made: made.pop())
        api.replies.append(Reply(blocks=(thinking, search), stop_reason="pause_turn"))
        made.append(await ask(model, user("hi")))
        driver.finish(driver.fold(driver.message("hi")))
        assert driver.state.loop is not None
        api.replies.append(Reply(blocks=ending))
        made.append(await ask(model, *_rows(driver)))
        assert api.last["messages"][-1] == {"role": "assistant", "content": [thinking, search]}
        driver.settle()
        assert driver.texts == (["Found it."] if ending else [NO_WORDS_AFTER])
        api.replies.append(says("yes"))
        await ask(model, *_rows(driver), user("and?"))
        sent = [block for message in api.last["messages"] for block in message["content"]]
        assert (search in sent, found in sent) == (bool(ending), bool(ending))


def _rows(driver: Driver) -> list[Row]:
    return [row for turn in driver.turns for row in turn.rows]


@pytest.mark.parametrize("stop_reason", get_args(StopReason))
async def test_every_stop_reason_passes(
    api: MessagesApi, model: AnthropicModel, stop_reason: str
) -> None:
    api.replies.append(says("so far", stop_reason=stop_reason))
    answer = await ask(model)
    assert answer.stop_reason == stop_reason
    assert text_of(answer) == "so far"


async def test_thinking_goes_back_unchanged(api: MessagesApi, model: AnthropicModel) -> None:
    """What we don't know goes back to the provider byte for byte, in its place."""
    thinking = {"type": "thinking", "thinking": "Hm, 20 seconds… 🙂", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "ZW5j"}
    novel = {"type": "hologram", "rays": [1, {"deep": True}]}
    call = {"type": "tool_use", "id": "toolu_1", "name": "send_message", "input": {"text": "x"}}
    api.replies.append(Reply(blocks=(thinking, redacted, novel, call)))
    answer = await ask(model)
    assert [b.data for b in answer.blocks if isinstance(b, OpaqueBlock)] == [
        thinking,
        redacted,
        novel,
    ]
    stored = msgspec.json.decode(msgspec.json.encode(answer.blocks), type=tuple[Block, ...])
    result = ToolResultBlock(tool_use_id="toolu_1", content="Sent.")
    await ask(model, user("hi"), row("assistant", *stored), row("user", result, source="tool"))
    assert api.last["messages"][1]["content"] == [thinking, redacted, novel, call]


async def test_thinking_that_is_bound_to_what_was_before_it_stays_here(api: MessagesApi) -> None:
    """The situation that stood before it has changed: the provider would refuse the request."""
    thinking = OpaqueBlock(data={"type": "thinking", "thinking": "", "signature": "c2ln"})
    rows = user("hi"), row("assistant", thinking, TextBlock(text="Yes?")), user("so")
    for name, expected in (
        ("claude-sonnet-5-5", ["text"]),
        ("claude-opus-5", ["thinking", "text"]),
    ):
        model = AnthropicModel(name, api_key=KEY, base_url=api.url)
        await ask(model, *rows)
        assert [block["type"] for block in api.last["messages"][1]["content"]] == expected
        await model.close()


# ---------------------------------------------------------------- what is too much


async def test_endless_arguments_and_thoughts_are_refused(
    api: MessagesApi, model: AnthropicModel
) -> None:
    api.replies.append(calls("send_message", {"text": "x" * 100_000}, chunk=500))
    error = await fail(model)
    assert not error.is_retryable
    assert "too large" in error.reason
    thinking = {"type": "thinking", "thinking": "x" * 400_000, "signature": "s"}
    api.replies.append(Reply(blocks=(thinking,), chunk=5000))
    assert not (await fail(model)).is_retryable


# ---------------------------------------------------------------- failures


async def test_a_message_without_a_word_or_a_reason_fails(
    api: MessagesApi, model: AnthropicModel
) -> None:
    api.replies.append(Reply(stop_reason=None))
    assert not (await fail(model)).is_retryable


async def test_text_without_a_reason_for_its_end_counts(
    api: MessagesApi, model: AnthropicModel
) -> None:
    api.replies.append(says("all of it", stop_reason=None))
    answer = await ask(model)
    assert (text_of(answer), answer.stop_reason) == ("all of it", "unknown")


async def test_events_out_of_order_are_a_retryable_failure(
    api: MessagesApi, model: AnthropicModel
) -> None:
    api.replies.append(says("a text of some length " * 10, fault="out_of_order"))
    assert (await fail(model)).is_retryable


# ---------------------------------------------------------------- history


USE = ToolUseBlock(id="t1", name="send_message", input={"text": "x"})
RESULT = ToolResultBlock(tool_use_id="t1", content="Sent.")
TEXT = TextBlock(text="hello")


def test_results_come_first_and_missing_ones_are_made_up() -> None:
    """I-2."""
    other = ToolUseBlock(id="t2", name="send_message", input={})
    messages = messages_of(
        [row("assistant", USE, other), row("user", TEXT), row("user", RESULT, source="tool")]
    )
    assert messages[0]["content"] == [{"type": "text", "text": EARLIER}]
    assert [b["type"] for b in messages[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert [b["content"] for b in messages[2]["content"][:2]] == ["Sent.", NO_RESULT]
