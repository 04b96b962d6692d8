"""Chat Completions: what only its adapter does, and what it makes of servers that know less."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.cortex.model import ModelAnswer, ToolSpec
from services.cortex.models import openai
from services.cortex.models.chat import name_of
from services.cortex.models.openai import OpenAIModel
from tests.cortex.asked import KEY, ask, fail, row, text_of, user
from tests.cortex.test_wires import SCHEMA
from tests.support.chat_api import ChatApi, Style, chat_api
from tests.support.messages_api import Reply, calls, fails, says
from vigil.contracts import OpaqueBlock, TextBlock, ToolResultBlock, ToolUseBlock

FIRST = {"type": "tool_use", "id": "call_a", "name": "search", "input": {"query": "trains"}}
SECOND = {"type": "tool_use", "id": "call_b", "name": "search", "input": {"query": "trams"}}


@pytest.fixture
async def api() -> AsyncIterator[ChatApi]:
    async with chat_api() as server:
        yield server


@pytest.fixture
async def model(api: ChatApi) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("qwen3:8b", api_key=KEY, base_url=api.url)
    yield model
    await model.close()


def used(answer: ModelAnswer) -> list[ToolUseBlock]:
    return [block for block in answer.blocks if isinstance(block, ToolUseBlock)]


# ---------------------------------------------------------------- what goes out


async def test_history_becomes_turns_of_strings(api: ChatApi, model: OpenAIModel) -> None:
    """I-1, I-2: what changes comes last; a failure is told in words; others' blocks stay here."""
    thinking = OpaqueBlock(data={"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    call = ToolUseBlock(id="c1", name="search", input={"query": "Züge"})
    failed = ToolResultBlock(tool_use_id="c1", content="no such page", is_error=True)
    await ask(
        model,
        user("hi"),
        user("are you there?"),
        row("assistant", thinking, TextBlock(text="I look."), call),
        row("user", failed, source="tool"),
        present="[Situation] noon",
    )
    sent = api.requests[-1]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["stream_options"] == {"include_usage": True}
    assert (sent.body["model"], sent.body["max_tokens"]) == ("qwen3:8b", 1000)
    function = {"name": "search", "arguments": '{"query": "Züge"}'}
    assert sent.body["messages"] == [
        {"role": "system", "content": "You are kind.\n\nYou are Vigil."},
        {"role": "user", "content": "hi\n\nare you there?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no such page"},
        {"role": "user", "content": "[Situation] noon"},
    ]
    assert {tool["type"] for tool in sent.body["tools"]} == {"function"}
    rays = OpaqueBlock(data={"type": "hologram", "rays": [1]})
    await ask(model, user("hi"), row("assistant", rays), user("so?"), system=())
    assert [one["role"] for one in api.last["messages"]] == ["user", "assistant", "user"]


async def test_an_account_is_told_to_nobody_else(
    api: ChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK reads more of the environment than the key."""
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "canary")
    model = OpenAIModel("qwen3", api_key="none", base_url=api.url)
    await ask(model)
    await model.close()
    assert "canary" not in str(api.requests[-1].headers)


async def test_effort_is_sent_to_models_that_take_it(api: ChatApi) -> None:
    for name, expected in (("gpt-5.5", "low"), ("qwen3", None)):
        model = OpenAIModel(name, api_key=KEY, base_url=api.url)
        await ask(model, effort="low")
        assert api.last.get("reasoning_effort") == expected
        await model.close()


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_what_a_server_refuses_is_left_out_from_then_on(
    api: ChatApi, model: OpenAIModel, status: int
) -> None:
    """One request more for each, once."""
    refused = ("stream_options", "max_tokens", "response_format")
    api.style = Style(refuses=refused, status=status)
    api.behave = lambda _: says('```json\n{"word": "ok"}\n```')
    answer = await ask(model, schema=SCHEMA)
    assert text_of(answer) == '{"word": "ok"}'
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (0, 0)
    assert len(api.requests) == 4
    assert api.last.keys() == {"model", "messages", "max_completion_tokens", "stream", "tools"}
    assert json.dumps(SCHEMA) in api.last["messages"][0]["content"]
    await ask(model, schema=SCHEMA)
    assert len(api.requests) == 5
    assert text_of(await ask(model)).startswith("```json")  # without a schema nothing is taken off
    assert json.dumps(SCHEMA) not in api.last["messages"][0]["content"]


async def test_a_schema_is_sent_as_one(api: ChatApi, model: OpenAIModel) -> None:
    await ask(model, schema=SCHEMA)
    schema = {"name": "answer", "schema": SCHEMA, "strict": True}
    assert api.last["response_format"] == {"type": "json_schema", "json_schema": schema}


async def test_what_openai_refuses_of_its_cache_is_left_out(
    api: ChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-23: a newer model may take less than its name says; nothing else is changed for that."""
    monkeypatch.setattr(openai, "API_URL", api.url)
    model = OpenAIModel("gpt-6-luna", api_key=KEY)
    await ask(model, session_key="ann:vigil:t1")
    assert "prompt_cache_breakpoint" in str(api.last["messages"])
    api.style = Style(refuses=("prompt_cache_options",))
    await ask(model)
    assert "prompt_cache" not in str(api.last)
    assert api.last["messages"][-1]["content"] == "hello"
    assert len(api.requests) == 3
    await model.close()


async def test_the_id_of_a_call_fits_whoever_gave_it(
    api: ChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI's own server takes 40 characters; others give longer ones, or keep more in them."""
    monkeypatch.setattr(openai, "API_URL", api.url)
    ids = ["call_" + "x" * 60 + end for end in "ab"]
    blocks = [ToolUseBlock(id=id_, name="search", input={}) for id_ in ids]
    told = [ToolResultBlock(tool_use_id=id_, content=id_[-1]) for id_ in ids]
    rows = [user("go"), row("assistant", *blocks), row("user", *told, source="tool")]
    for url in (None, api.url):
        model = OpenAIModel("gpt-test", api_key=KEY, base_url=url)
        await ask(model, *rows)
        sent = [call["id"] for call in api.last["messages"][2]["tool_calls"]]
        results = {m["tool_call_id"]: m["content"] for m in api.last["messages"][3:5]}
        assert [results[id_] for id_ in sent] == ["a", "b"]
        assert (sent == ids) is (url is not None)
        assert url or max(map(len, sent)) <= 40
        await model.close()


# ---------------------------------------------------------------- answers


async def test_cached_tokens_are_a_part_of_the_prompt(api: ChatApi, model: OpenAIModel) -> None:
    usage = {
        "input_tokens": 7,
        "output_tokens": 9,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 50,
    }
    api.replies.append(says("hi", usage=usage, model="qwen3:8b-q4"))
    answer = await ask(model)
    assert (answer.usage.model, answer.model) == ("qwen3:8b", "qwen3:8b-q4")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 9)
    assert (answer.usage.cache_read_tokens, answer.usage.cache_write_tokens) == (100, 50)


@pytest.mark.parametrize(
    "style",
    [
        Style(),
        Style(is_whole=True, stops_for_calls=False),
        Style(has_ids=False),
        Style(has_ids=False, is_whole=True),
        Style(has_usage=False),
    ],
)
async def test_calls_in_pieces_and_at_once(api: ChatApi, model: OpenAIModel, style: Style) -> None:
    """By index, by id, or by neither; a call without an id gets one that no other has."""
    api.style = style
    api.replies.append(Reply(blocks=({"type": "text", "text": "So:"}, FIRST, SECOND), chunk=3))
    answer = await ask(model)
    assert (text_of(answer), answer.stop_reason) == ("So:", "tool_use")
    first, second = used(answer)
    assert (first.name, first.input, second.input) == ("search", FIRST["input"], SECOND["input"])
    assert (first.id, second.id) == ("call_a", "call_b") or not style.has_ids
    results = [ToolResultBlock(tool_use_id=call.id, content="on time") for call in (first, second)]
    rows = [user("hello"), row("assistant", *answer.blocks), row("user", *results, source="tool")]
    api.replies.append(Reply(blocks=(FIRST,)))
    (again,) = used(await ask(model, *rows))
    assert len({first.id, second.id, again.id}) == 3


async def test_a_long_name_of_a_tool_comes_back_as_it_was(api: ChatApi, model: OpenAIModel) -> None:
    """This wire takes 64 characters; two that begin alike stay two."""
    tools = tuple(
        ToolSpec(name="server__" + "x" * 80 + end, description="d", input_schema={"type": "object"})
        for end in "ab"
    )
    names = [name_of(tool.name) for tool in tools]
    api.replies.append(calls(names[1], {}))
    (call,) = used(await ask(model, tools=tools))
    assert call.name == tools[1].name
    assert [tool["function"]["name"] for tool in api.last["tools"]] == names
    result = ToolResultBlock(tool_use_id=call.id, content="x")
    await ask(model, user("go"), row("assistant", call), row("user", result), tools=tools)
    assert api.last["messages"][2]["tool_calls"][0]["function"]["name"] == names[1]


async def test_a_call_without_arguments_has_none(api: ChatApi, model: OpenAIModel) -> None:
    api.replies.append(calls("list_memory", ""))
    assert used(await ask(model))[0].input == {}


@pytest.mark.parametrize("stop_reason", ["length", "content_filter"])
async def test_half_a_call_of_a_short_answer_is_left_out(
    api: ChatApi, model: OpenAIModel, stop_reason: str
) -> None:
    half = {**SECOND, "raw_input": '{"query": "tra'}
    blocks = ({"type": "text", "text": "So:"}, FIRST, half)
    api.replies.append(Reply(blocks=blocks, stop_reason=stop_reason))
    answer = await ask(model)
    assert answer.stop_reason == {"length": "max_tokens", "content_filter": "refusal"}[stop_reason]
    assert [call.id for call in used(answer)] == ["call_a"]
    api.replies.append(Reply(blocks=blocks))
    assert [bool(call.malformed) for call in used(await ask(model))] == [False, True]


async def test_a_refusal_is_said(api: ChatApi, model: OpenAIModel) -> None:
    api.replies.append(Reply(blocks=({"type": "refusal", "refusal": "I can't help there."},)))
    answer = await ask(model)
    assert (text_of(answer), answer.stop_reason) == ("I can't help there.", "refusal")


async def test_thoughts_are_not_kept(api: ChatApi, model: OpenAIModel) -> None:
    thinking = {"type": "thinking", "thinking": "hm " * 200_000}
    api.replies.append(Reply(blocks=(thinking, {"type": "text", "text": "Yes."}), chunk=10_000))
    assert (await ask(model)).blocks == (TextBlock(text="Yes."),)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("reply", "is_retryable", "reason"),
    [
        (fails(429, "insufficient_quota", error_code="insufficient_quota"), False, "spend"),
        (fails(429, "requests", error_code="rate_limit_exceeded"), True, "rate"),
        (says("x", fault="error_event", error_code="503"), True, "failed (503)"),
        (says("x", fault="error_event", error_code="rate_limit_exceeded"), True, "rate"),
        (says("x", fault="error_event", error_type="insufficient_quota"), False, "spend"),
        (says("long " * 20, fault="error_event", error_message="out of memory"), True, "(500)"),
        (says("hi", stop_reason=None), True, "broke off"),
        (calls("search", {}, fault="short"), True, "broke off"),
    ],
)
async def test_what_its_servers_say(
    api: ChatApi, model: OpenAIModel, reply: Reply, is_retryable: bool, reason: str
) -> None:
    api.replies.append(reply)
    error = await fail(model)
    assert (error.is_retryable, reason in error.reason) == (is_retryable, True)


async def test_a_wrong_base_url_or_model_names_the_settings(api: ChatApi) -> None:
    model = OpenAIModel(
        "qwen3", api_key=KEY, base_url=api.url.removesuffix("/v1"),
        model_setting="models.local.model and models.local.base_url",
    )  # fmt: skip
    error = await fail(model)
    await model.close()
    assert error.reason == (
        "the model's server does not know the model 'qwen3'; check models.local.model and "
        "models.local.base_url (404): no POST /chat/completions"
    )


@pytest.mark.parametrize("body", [{"detail": [{"loc": ["body", "x"]}]}, {"error": "not found"}])
async def test_errors_of_any_shape_are_quoted(
    api: ChatApi, model: OpenAIModel, body: dict[str, Any]
) -> None:
    api.wire = api.wire._replace(error=lambda _: body)
    api.replies.append(fails(404))
    expected = str(body.get("error") or body["detail"])
    assert (await fail(model)).reason.endswith(f"(404): {expected}")


async def test_chunks_of_nothing_are_passed_over(api: ChatApi, model: OpenAIModel) -> None:
    """Servers send such to keep a connection open, or for what they add of their own."""
    odd: tuple[Any, ...] = (
        {}, "still at it", {"choices": None}, {"choices": [{}]}, {"choices": [{"delta": None}]},
        {"choices": [{"index": 1, "delta": {"content": "another"}}]},
    )  # fmt: skip
    told = api.wire.events
    api.wire = api.wire._replace(
        events=lambda *asked: iter([*(("", json.dumps(one)) for one in odd), *told(*asked)])
    )
    api.replies.append(says("Yes."))
    assert (await ask(model)).blocks == (TextBlock(text="Yes."),)
