"""The real Anthropic SDK against a local server that speaks the Messages API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from services.cortex.models.anthropic import (
    ANSWER_BYTES_MAX,
    AnthropicModel,
    mend,
    plain,
)
from services.cortex.models.messages import EARLIER, NO_RESULT, messages_of
from services.cortex.thought.model import (
    ModelAnswer,
    ModelError,
    ModelRequest,
    Situation,
    StopReason,
)
from services.cortex.thought.tools import specs
from tests.cortex.driver import Driver
from tests.support.messages_api import Fault, MessagesApi, Reply, calls, fails, messages_api, says
from tests.support.messages_rules import breakpoints
from vigil.contracts import (
    TURN_BYTES_MAX,
    Block,
    OpaqueBlock,
    Row,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

NOW = datetime(2026, 11, 20, 11, 0, tzinfo=UTC)
KEY = "sk-ant-api03-verysecret"
SITUATION = Situation(
    now=NOW, timezone="UTC", user="ann", agent="vigil", follow_ups={}, autonomy_enabled=True
)


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with messages_api() as server:
        yield server


@pytest.fixture
async def model(api: MessagesApi) -> AsyncIterator[AnthropicModel]:
    model = AnthropicModel("claude-test", api_key=KEY, base_url=api.url)
    yield model
    await model.close()


def row(role: Any, *blocks: Block, source: Any = "person") -> Row:
    return Row(role=role, blocks=blocks, at=NOW, source=source)


def user(text: str) -> Row:
    return row("user", TextBlock(text=text))


def request(*rows: Row, **changes: Any) -> ModelRequest:
    base = ModelRequest(
        session_key="ann:vigil:t1",
        system=("You are kind.", "You are Vigil."),
        rows=rows or (user("hello"),),
        tools=specs(),
        max_tokens=1000,
        timeout_s=20.0,
        situation=SITUATION,
    )
    return msgspec.structs.replace(base, **changes)


async def ask(model: AnthropicModel, *rows: Row, **changes: Any) -> ModelAnswer:
    return await model.answer(request(*rows, **changes), lambda _: None)


async def fail(model: AnthropicModel, **changes: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, **changes)
    assert KEY not in str(caught.value)
    return caught.value


def text_of(answer: ModelAnswer) -> str:
    return "".join(block.text for block in answer.blocks if isinstance(block, TextBlock))


# ---------------------------------------------------------------- answers


async def test_text_streams_as_it_comes(api: MessagesApi, model: AnthropicModel) -> None:
    """I-3: each piece is handed on, and together they are the answer."""
    usage = {
        "input_tokens": 7,
        "output_tokens": 9,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 50,
    }
    api.replies.append(says("Good morning, Ann. " * 5, usage=usage))
    pieces: list[str] = []
    answer = await model.answer(request(), pieces.append)
    assert len(pieces) > 3
    assert "".join(pieces) == text_of(answer) == "Good morning, Ann. " * 5
    assert answer.stop_reason == "end_turn"
    assert answer.usage.model == "claude-test"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 9)
    assert (answer.usage.cache_read_tokens, answer.usage.cache_write_tokens) == (100, 50)


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
    assert [tool["name"] for tool in sent.body["tools"]] == [
        "schedule_followup",
        "cancel_followup",
        "send_message",
        "ask_user",
        "task_create",
        "task_update",
        "task_list",
        "list_memory",
        "memory_recall",
        "search",
        "summarize",
        "memory_save",
        "remember",
        "branch",
        "research",
        "spawn_worker",
    ]
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


async def test_tool_calls_with_and_without_text(api: MessagesApi, model: AnthropicModel) -> None:
    """S-12: the answer carries the calls; an unknown tool is the core's to refuse."""
    arguments = {"delay_seconds": 20, "reason": "stretch"}
    api.replies.append(calls("schedule_followup", arguments, text="One moment."))
    answer = await ask(model)
    assert answer.stop_reason == "tool_use"
    spoken, call = answer.blocks
    assert spoken == TextBlock(text="One moment.")
    assert isinstance(call, ToolUseBlock)
    assert (call.name, call.input) == ("schedule_followup", arguments)

    api.replies.append(calls("launch rockets!", {}, call_id="toolu_x"))
    answer = await ask(model)
    assert answer.blocks == (ToolUseBlock(id="toolu_x", name="launch rockets!", input={}),)


async def test_a_made_up_tool_does_not_spoil_the_next_call(
    api: MessagesApi, model: AnthropicModel
) -> None:
    """The API refuses history with names of its own model's making; we send them cleaned."""
    api.replies.append(calls("launch rockets!", {}, call_id="call 1"))
    answer = await ask(model)
    result = ToolResultBlock(tool_use_id="call 1", content="no such tool", is_error=True)
    await ask(model, user("go"), row("assistant", *answer.blocks), row("user", result))
    call, answered = api.last["messages"][1]["content"][0], api.last["messages"][2]["content"][0]
    assert call["name"] == "launch_rockets_"
    assert call["id"] == answered["tool_use_id"] == "call_1"


@pytest.mark.parametrize("stop_reason", ["bored", None])
async def test_an_answer_counts_whatever_ended_it(
    api: MessagesApi, model: AnthropicModel, stop_reason: str | None
) -> None:
    """A provider may have new reasons: what was said is not thrown away for that."""
    api.replies.append(says("all of it", stop_reason=stop_reason))
    answer = await ask(model)
    assert (text_of(answer), answer.stop_reason) == ("all of it", "unknown")


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
        assert driver.texts == ["Found it."][: len(ending)]
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


async def test_a_refusal_or_silence_may_be_empty(api: MessagesApi, model: AnthropicModel) -> None:
    for stop_reason in ("refusal", "end_turn"):
        api.replies.append(Reply(stop_reason=stop_reason))
        answer = await ask(model)
        assert (answer.blocks, answer.stop_reason) == ((), stop_reason)


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


async def test_a_text_without_end_is_cut_and_marked(
    api: MessagesApi, model: AnthropicModel
) -> None:
    """A turn is one message of at most 512 kB, and holds the text twice."""
    api.replies.append(says('"Äh…" ' * 200_000, chunk=10_000, delay_s=0.001))
    pieces: list[str] = []
    answer = await model.answer(request(), pieces.append)
    assert answer.stop_reason == "max_tokens"
    text = text_of(answer)
    assert 2 * len(msgspec.json.encode(text)) <= ANSWER_BYTES_MAX + 4
    assert ANSWER_BYTES_MAX + 128 * 1024 < TURN_BYTES_MAX
    assert answer.usage.output_tokens > 20_000
    assert len(text) > 80_000
    assert sum(map(len, pieces)) <= len(text)


async def test_a_text_at_the_limit_is_whole(api: MessagesApi, model: AnthropicModel) -> None:
    api.replies.append(says("x" * 170_000, chunk=1000))
    answer = await ask(model)
    assert text_of(answer) == "x" * 170_000
    assert answer.stop_reason == "end_turn"


async def test_one_huge_delta_is_cut_too(api: MessagesApi, model: AnthropicModel) -> None:
    api.replies.append(says("\n" * 1_000_000, chunk=1_000_000))
    answer = await ask(model)
    assert 100 < len(text_of(answer)) < ANSWER_BYTES_MAX // 4 + 100  # a newline takes two bytes


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


@pytest.mark.parametrize(
    ("reply", "reason", "after_s"),
    [
        (fails(429, "rate_limit_error"), "rate", None),
        (fails(429, "rate_limit_error", headers={"retry-after": "17"}), "rate", 17.0),
        (fails(429, headers={"retry-after-ms": "1500", "retry-after": "2"}), "rate", 1.5),
        (fails(429, headers={"retry-after": "soon"}), "rate", None),
        (fails(429, headers={"retry-after": "-1"}), "rate", None),
        (fails(429, headers={"retry-after": "inf"}), "rate", None),
        (fails(429, headers={"retry-after": "99999999"}), "rate", 86_400.0),
        (fails(529, "overloaded_error"), "overloaded", None),
        (fails(500), "failed", None),
        (fails(502), "failed", None),
        (fails(503, headers={"retry-after": "3"}), "failed", 3.0),
        (fails(504), "timed out", None),
        (fails(408), "timed out", None),
        (fails(409), "conflict", None),
        (
            says("never mind", fault="error_event", error_type="overloaded_error"),
            "overloaded",
            None,
        ),
        (says("never mind", fault="error_event", error_type="api_error"), "failed", None),
        (says("never mind", fault="error_event", error_type="new_error"), "failed", None),
    ],
)
async def test_what_may_pass_is_retryable(
    api: MessagesApi, model: AnthropicModel, reply: Reply, reason: str, after_s: float | None
) -> None:
    """S-12: 429, 529, 5xx become deadlines, with the provider's own wish; one request each."""
    api.replies.append(reply)
    error = await fail(model)
    assert error.is_retryable
    assert reason in error.reason
    assert error.retry_after_s == after_s
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fails(400, "invalid_request_error", error_message="max_tokens: too many"), "too many"),
        (fails(401, "authentication_error", error_message=f"bad key {KEY}"), "ANTHROPIC_API_KEY"),
        (fails(402, "billing_error"), "spend"),
        (fails(403, "permission_error"), "may not use"),
        (fails(404, "not_found_error", error_message=f"model: {KEY}"), "VIGIL_MODEL"),
        (fails(413, "request_too_large"), "too large"),
        (fails(429, error_code="enforced_spend_limit_reached"), "spend"),
        (fails(429, headers={"x-should-retry": "false"}), "rate"),
        (fails(418, "teapot"), "failed"),
        (says("x", fault="error_event", error_type="authentication_error"), "ANTHROPIC_API_KEY"),
    ],
)
async def test_what_will_not_pass_is_terminal(
    api: MessagesApi, model: AnthropicModel, reply: Reply, reason: str
) -> None:
    """A sentence a person understands, without the key."""
    api.replies.append(reply)
    error = await fail(model)
    assert not error.is_retryable
    assert error.retry_after_s is None
    assert reason in error.reason
    assert len(api.requests) == 1


FAULTS: tuple[Fault, ...] = (
    "cut", "short", "invalid_json", "out_of_order", "not_a_stream", "empty",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_garbage_is_a_retryable_failure(
    api: MessagesApi, model: AnthropicModel, fault: Fault
) -> None:
    api.replies.append(says("a text of some length " * 10, fault=fault))
    assert (await fail(model)).is_retryable
    assert text_of(await ask(model)).startswith("I heard you")  # the client still works


@pytest.mark.parametrize("fault", ["hang", "stall"])
async def test_a_call_that_hangs_ends_at_its_timeout(
    api: MessagesApi, model: AnthropicModel, fault: Fault
) -> None:
    api.replies.append(says("a text of some length " * 10, fault=fault))
    error = await fail(model, timeout_s=0.3)
    assert error.is_retryable
    assert "0.3 s" in error.reason


async def test_a_drip_ends_at_the_timeout_of_the_whole_call(
    api: MessagesApi, model: AnthropicModel
) -> None:
    """Each event comes in time, the answer doesn't."""
    api.replies.append(says("drip " * 200, chunk=1, delay_s=0.02))
    pieces: list[str] = []
    with pytest.raises(ModelError) as caught:
        await model.answer(request(timeout_s=0.5), pieces.append)
    assert caught.value.is_retryable
    assert pieces


async def test_a_server_that_is_not_there(unused_tcp_port_factory: Callable[[], int]) -> None:
    model = AnthropicModel(
        "m", api_key=KEY, base_url=f"http://127.0.0.1:{unused_tcp_port_factory()}"
    )
    error = await fail(model)
    await model.close()
    assert error.is_retryable
    assert "can't be reached" in error.reason


@pytest.mark.parametrize(
    ("reply", "is_retryable"),
    [
        (calls("schedule_followup", '{"delay_seconds": tomorrow}'), True),
        (calls("schedule_followup", "[1, 2]"), False),
        (calls("schedule_followup", '"x"'), False),
        (says(" ", stop_reason="bored"), False),
        (Reply(stop_reason=None), False),
        (says("hi", usage={}), False),
        (says("hi", usage={"input_tokens": -5, "output_tokens": 1}), False),
        (says("hi", usage={"input_tokens": "many", "output_tokens": 1}), False),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_answers_without_the_expected_shape(
    api: MessagesApi, model: AnthropicModel, reply: Reply, is_retryable: bool
) -> None:
    """A model that answers garbage: always a ModelError, never another exception."""
    api.replies.append(reply)
    assert (await fail(model)).is_retryable is is_retryable


async def test_what_the_log_can_not_hold_is_mended(api: MessagesApi, model: AnthropicModel) -> None:
    """Half a character, NaN and huge numbers would break the commit."""
    api.replies.append(
        Reply(
            blocks=(
                {"type": "text", "text": "half \ud83d and \U0001f600 whole"},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "send_message",
                    "raw_input": '{"text": NaN, "n": 123456789012345678901234567890}',
                },
            ),
            chunk=1000,
        )
    )
    pieces: list[str] = []
    answer = await model.answer(request(), pieces.append)
    assert answer.blocks[0] == TextBlock(text="half \ufffd and \U0001f600 whole")
    call = answer.blocks[1]
    assert isinstance(call, ToolUseBlock)
    assert call.input == {"text": None, "n": "123456789012345678901234567890"}
    msgspec.json.encode((answer, pieces))


def test_torn_characters_are_joined() -> None:
    assert mend("\ud83d\ude00") == "\U0001f600"
    assert mend("plain") == "plain"
    assert plain({"a": [1.5, float("inf"), True, None, "\ud83d"]}) == {
        "a": [1.5, None, True, None, "\ufffd"]
    }
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="deeply"):
        plain(deep)


async def test_cancelling_is_not_a_failure(api: MessagesApi, model: AnthropicModel) -> None:
    """Stopping a turn ends the call and its connection."""
    api.replies.append(says("x" * 100, fault="stall"))
    pieces: list[str] = []
    task = asyncio.create_task(model.answer(request(), pieces.append))
    async with asyncio.timeout(5):
        while not pieces:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while api.open_connections:
            await asyncio.sleep(0.01)


async def test_a_hundred_calls_at_once(api: MessagesApi, model: AnthropicModel) -> None:
    answers = await asyncio.gather(*(ask(model, user(f"number {n}")) for n in range(100)))
    assert [text_of(a) for a in answers] == [f"I heard you: number {n}" for n in range(100)]


# ---------------------------------------------------------------- history


USE = ToolUseBlock(id="t1", name="send_message", input={"text": "x"})
RESULT = ToolResultBlock(tool_use_id="t1", content="Sent.")
TEXT = TextBlock(text="hello")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row("assistant", TEXT)],
        [row("user"), row("user", TextBlock(text="  "))],
        [row("user", RESULT), row("assistant", TEXT)],
        [row("user", TEXT), row("user", TEXT), row("assistant", TEXT), row("assistant", TEXT)],
        [row("user", TEXT), row("assistant", TextBlock(text="")), row("user", TEXT)],
        [row("user", TEXT), row("assistant", USE)],
        [row("user", TEXT), row("assistant", USE), row("user", TEXT)],
        [row("user", TEXT), row("assistant", USE), row("user", RESULT, RESULT), row("user", TEXT)],
        [row("user", TEXT), row("assistant", USE), row("user", TEXT, RESULT)],
        [row("user", TEXT), row("assistant", USE), row("assistant", TEXT), row("user", RESULT)],
        [row("assistant", USE), row("user", RESULT), row("assistant", TEXT), row("user", RESULT)],
    ],
)
async def test_any_history_becomes_messages_that_the_api_takes(
    api: MessagesApi, model: AnthropicModel, rows: list[Row]
) -> None:
    """I-2: a call and its result together; begins with the user; nothing empty."""
    answer = await model.answer(
        msgspec.structs.replace(request(), rows=tuple(rows)), lambda _: None
    )
    assert answer.stop_reason == "end_turn"


def test_results_come_first_and_missing_ones_are_made_up() -> None:
    """I-2."""
    other = ToolUseBlock(id="t2", name="send_message", input={})
    messages = messages_of(
        [row("assistant", USE, other), row("user", TEXT), row("user", RESULT, source="tool")]
    )
    assert messages[0]["content"] == [{"type": "text", "text": EARLIER}]
    assert [b["type"] for b in messages[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert [b["content"] for b in messages[2]["content"][:2]] == ["Sent.", NO_RESULT]


async def test_the_scheduling_assistant_schedules(api: MessagesApi, model: AnthropicModel) -> None:
    """What end-to-end runs talk to: a tool call, then an answer to its result."""
    rows = [user("remind me in 20 seconds to stretch")]
    answer = await ask(model, *rows)
    call = answer.blocks[-1]
    assert isinstance(call, ToolUseBlock)
    assert call.input["keep"] is True
    result = ToolResultBlock(tool_use_id=call.id, content="Scheduled.")
    rows += [row("assistant", *answer.blocks), row("user", result, source="tool")]
    assert text_of(await ask(model, *rows)) == "I will come back in 20 seconds."
