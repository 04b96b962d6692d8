"""Every adapter with its real SDK against a local server that speaks its wire, by one script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from services.cortex.model import UNUSABLE, LanguageModel, ModelError
from services.cortex.models.answers import ANSWER_BYTES_MAX, mend, plain
from services.cortex.models.anthropic import AnthropicModel
from services.cortex.models.openai import OpenAIModel
from tests.cortex.asked import KEY, ask, fail, request, row, text_of, user
from tests.support.chat_api import chat_api
from tests.support.messages_api import Fault, MessagesApi, Reply, calls, fails, messages_api, says
from vigil.contracts import (
    TURN_BYTES_MAX,
    Row,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)


class Way(NamedTuple):
    """An adapter, and a server that speaks its wire."""

    name: str
    model: Callable[..., LanguageModel]
    running: Callable[[], AbstractAsyncContextManager[MessagesApi]]

    def to(self, url: str) -> LanguageModel:
        return self.model(
            "model-test", api_key=KEY, base_url=url, key_setting="MODEL_KEY",
            model_setting="models.m.model",
        )  # fmt: skip


SCHEMA: Final = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
WAYS: Final = {
    "anthropic": Way("anthropic", AnthropicModel, messages_api),
    "openai": Way("openai", OpenAIModel, chat_api),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture
async def api(way: Way) -> AsyncIterator[MessagesApi]:
    async with way.running() as server:
        yield server


@pytest.fixture
async def model(way: Way, api: MessagesApi) -> AsyncIterator[LanguageModel]:
    model = way.to(api.url)
    yield model
    await model.close()


# ---------------------------------------------------------------- answers


async def test_text_streams_as_it_comes(api: MessagesApi, model: LanguageModel) -> None:
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
    assert answer.usage.model == "model-test"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 9)
    assert (answer.usage.cache_read_tokens, answer.usage.cache_write_tokens) == (100, 50)


async def test_tool_calls_with_and_without_text(api: MessagesApi, model: LanguageModel) -> None:
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
    api: MessagesApi, model: LanguageModel
) -> None:
    """The API refuses history with names of its own model's making; we send them cleaned."""
    api.replies.append(calls("launch rockets!", {}, call_id="call 1"))
    answer = await ask(model)
    result = ToolResultBlock(tool_use_id="call 1", content="no such tool", is_error=True)
    await ask(model, user("go"), row("assistant", *answer.blocks), row("user", result))
    sent = api.wire.read(api.last)["messages"]
    call, answered = sent[1]["content"][0], sent[2]["content"][0]
    assert call["name"] == "launch_rockets_"
    assert call["id"] == answered["tool_use_id"] == "call_1"


async def test_an_answer_counts_whatever_ended_it(api: MessagesApi, model: LanguageModel) -> None:
    """A provider may have new reasons: what was said is not thrown away for that."""
    api.replies.append(says("all of it", stop_reason="bored"))
    answer = await ask(model)
    assert (text_of(answer), answer.stop_reason) == ("all of it", "unknown")


async def test_a_refusal_or_silence_may_be_empty(api: MessagesApi, model: LanguageModel) -> None:
    for stop_reason in ("refusal", "end_turn"):
        api.replies.append(Reply(stop_reason=stop_reason))
        answer = await ask(model)
        assert (answer.blocks, answer.stop_reason) == ((), stop_reason)


async def test_a_schema_that_a_server_ignores_is_given_in_words(
    api: MessagesApi, model: LanguageModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """C-9: the answer that shows it is no JSON; who asks again gets it by words."""
    api.replies.extend([says("Sure: ok"), says('```json\n{"word": "ok"}\n```'), says("")])
    assert text_of(await ask(model, schema=SCHEMA)) == "Sure: ok"
    assert "JSON Schema" not in str(api.last)
    again = await ask(model, schema=SCHEMA)
    assert text_of(again) == '{"word": "ok"}'
    assert again.lacks
    sent = api.wire.read(api.last)
    assert "output_config" not in sent
    assert json.dumps(SCHEMA) in sent["system"][-1]["text"]
    assert not (await ask(model)).lacks - again.lacks
    assert "JSON Schema" not in str(api.last)
    told = [line for line in capsys.readouterr().out.splitlines() if "cortex.lacks" in line]
    assert len(told) == 1, "once for all"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (500, "tools param requires --jinja flag"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
    ],
)
async def test_who_takes_no_tools_answers_without_and_knows_it(
    api: MessagesApi, model: LanguageModel, status: int, words: str
) -> None:
    """It is to say that it sets no reminder, instead of claiming one, or of failing each time."""
    api.behave = lambda body: (
        fails(status, error_message=words) if "tools" in body else says("I can't do that.")
    )
    answer = await ask(model, user("remind me to stretch"))
    assert (text_of(answer), answer.lacks) == ("I can't do that.", {"tools"})
    sent = api.wire.read(api.last)
    assert "You have no tools" in sent["system"][-1]["text"]
    await ask(model)
    assert len(api.requests) == 3, "it is refused once"
    await ask(model, tools=())
    assert "You have no tools" not in str(api.last)


# ---------------------------------------------------------------- what is too much


async def test_a_text_without_end_is_cut_and_marked(api: MessagesApi, model: LanguageModel) -> None:
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


async def test_a_text_at_the_limit_is_whole(api: MessagesApi, model: LanguageModel) -> None:
    api.replies.append(says("x" * 170_000, chunk=1000))
    answer = await ask(model)
    assert text_of(answer) == "x" * 170_000
    assert answer.stop_reason == "end_turn"


async def test_ten_megabytes_of_one_token_are_cut(api: MessagesApi, model: LanguageModel) -> None:
    api.replies.append(says("x" * 10_000_000, chunk=10_000_000))
    answer = await ask(model)
    assert answer.stop_reason == "max_tokens"
    assert 170_000 < len(text_of(answer)) < 180_000


async def test_one_huge_delta_is_cut_too(api: MessagesApi, model: LanguageModel) -> None:
    api.replies.append(says("\n" * 1_000_000, chunk=1_000_000))
    answer = await ask(model)
    assert 100 < len(text_of(answer)) < ANSWER_BYTES_MAX // 4 + 100  # a newline takes two bytes


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
    api: MessagesApi, model: LanguageModel, reply: Reply, reason: str, after_s: float | None
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
        (fails(401, "authentication_error", error_message=f"bad key {KEY}"), "MODEL_KEY"),
        (fails(402, "billing_error"), "spend"),
        (fails(403, "permission_error"), "may not use the model 'model-test'"),
        (fails(404, "not_found_error", error_message=f"model: {KEY}"), "models.m.model"),
        (fails(413, "request_too_large"), "too long"),
        (fails(429, error_code="enforced_spend_limit_reached"), "spend"),
        (fails(429, headers={"x-should-retry": "false"}), "rate"),
        (fails(418, "teapot"), "failed"),
        (fails(500, error_message="image input is not supported"), "rejected the request (422)"),
        (says("x", fault="error_event", error_type="authentication_error"), "MODEL_KEY"),
    ],
)
async def test_what_will_not_pass_is_terminal(
    api: MessagesApi, model: LanguageModel, reply: Reply, reason: str
) -> None:
    """A sentence a person understands, without the key."""
    api.replies.append(reply)
    error = await fail(model)
    assert not error.is_retryable
    assert error.retry_after_s is None
    assert reason in error.reason
    assert len(api.requests) == 1


FAULTS: tuple[Fault, ...] = (
    "cut", "short", "invalid_json", "not_a_stream", "empty",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_garbage_is_a_retryable_failure(
    api: MessagesApi, model: LanguageModel, fault: Fault
) -> None:
    api.replies.append(says("a text of some length " * 10, fault=fault))
    error = await fail(model)
    assert (error.is_retryable, error.kind) == (True, UNUSABLE)
    assert "Error" not in error.reason
    is_none = fault in ("not_a_stream", "empty")
    assert ("base_url" in error.reason) is is_none, "a page's address is taken for an API's"
    assert text_of(await ask(model)).startswith("I heard you")  # the client still works


@pytest.mark.parametrize(
    ("fault", "words"), [("hang", "did not answer within"), ("stall", "fell silent for")]
)
async def test_a_call_that_hangs_ends_after_its_silence(
    api: MessagesApi, model: LanguageModel, fault: Fault, words: str
) -> None:
    api.replies.append(says("a text of some length " * 10, fault=fault))
    error = await fail(model, timeout_s=0.3)
    assert (error.is_retryable, error.kind) == (True, "timeout")
    assert f"{words} 0.3 s" in error.reason


async def test_a_healthy_stream_is_not_ended_by_its_length(
    api: MessagesApi, model: LanguageModel
) -> None:
    """Each event comes in time, however long all of them take; only at the end of a generous total
    it's over, and then asking again wouldn't help."""
    drip = says("drip " * 5, chunk=1, delay_s=0.05)
    api.replies.extend([drip, drip])
    begun = asyncio.get_running_loop().time()
    assert text_of(await ask(model, timeout_s=1.0)) == "drip " * 5
    assert asyncio.get_running_loop().time() - begun > 1.0
    pieces: list[str] = []
    with pytest.raises(ModelError, match="had no end within 1 s") as caught:
        await model.answer(request(timeout_s=1.0, total_s=1.0), pieces.append)
    assert (caught.value.is_retryable, caught.value.kind) == (False, "endless")
    assert pieces


async def test_a_connection_that_is_dropped_is_followed_by_another(
    api: MessagesApi, model: LanguageModel
) -> None:
    """A server may close one that was kept open just when it is used again: nothing was read of
    what came over it. Once; who does it again isn't there."""
    api.replies.extend([says("", fault="drop"), says("Here.")])
    assert text_of(await ask(model)) == "Here."
    api.replies.extend([says("", fault="drop"), says("", fault="drop")])
    assert (await fail(model)).kind == "unreachable"
    assert len(api.requests) == 4


async def test_a_server_that_is_not_there(
    way: Way, unused_tcp_port_factory: Callable[[], int]
) -> None:
    model = way.to(f"http://127.0.0.1:{unused_tcp_port_factory()}")
    error = await fail(model)
    await model.close()
    assert error.is_retryable
    assert "can't be reached" in error.reason


async def test_silence_for_a_reason_that_is_not_known_fails(
    api: MessagesApi, model: LanguageModel
) -> None:
    api.replies.append(says(" ", stop_reason="bored"))
    assert not (await fail(model)).is_retryable


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"input_tokens": None, "output_tokens": None},
        {"input_tokens": 7, "output_tokens": None},
        {"input_tokens": -5, "output_tokens": 1},
        {"input_tokens": "many", "output_tokens": 1},
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_an_answer_counts_without_a_count_of_its_tokens(
    api: MessagesApi, model: LanguageModel, usage: dict[str, Any]
) -> None:
    """Nothing is settled then: what was reserved for the call stays spent."""
    api.replies.append(says("Hello.", usage=usage))
    answer = await ask(model)
    assert (text_of(answer), answer.usage.tokens) == ("Hello.", 0)


async def test_what_the_log_can_not_hold_is_mended(api: MessagesApi, model: LanguageModel) -> None:
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


async def test_cancelling_is_not_a_failure(api: MessagesApi, model: LanguageModel) -> None:
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


async def test_a_hundred_calls_at_once(api: MessagesApi, model: LanguageModel) -> None:
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
    api: MessagesApi, model: LanguageModel, rows: list[Row]
) -> None:
    """I-2: a call and its result together; begins with the user; nothing empty."""
    answer = await model.answer(
        msgspec.structs.replace(request(), rows=tuple(rows)), lambda _: None
    )
    assert answer.stop_reason == "end_turn"


async def test_the_scheduling_assistant_schedules(api: MessagesApi, model: LanguageModel) -> None:
    """What end-to-end runs talk to: a tool call, then an answer to its result."""
    rows = [user("remind me in 20 seconds to stretch")]
    answer = await ask(model, *rows)
    call = answer.blocks[-1]
    assert isinstance(call, ToolUseBlock)
    assert call.input["keep"] is True
    result = ToolResultBlock(tool_use_id=call.id, content="Scheduled.")
    rows += [row("assistant", *answer.blocks), row("user", result, source="tool")]
    assert text_of(await ask(model, *rows)) == "I will come back in 20 seconds."
