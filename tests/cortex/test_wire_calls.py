"""Calls of tools as servers and small models really send them, by each wire and then in a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.cortex.core.conclusion import MALFORMED
from services.cortex.model import SPOILED, LanguageModel, ModelAnswer
from tests.cortex.asked import ask, fail, row, text_of, user
from tests.cortex.test_wires import Way, api, model, way
from tests.support.circuits import circuits_of
from tests.support.messages_api import MessagesApi, Reply, calls, fails, says
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.contracts import Row, ToolResultBlock, ToolUseBlock

__all__ = ["api", "model", "way"]


def use(id_: str, path: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "read_file", "input": {"path": path}, **more}


def used(answer: ModelAnswer) -> list[ToolUseBlock]:
    return [block for block in answer.blocks if isinstance(block, ToolUseBlock)]


def results(answer: ModelAnswer) -> Row:
    """Return what each call read: its path."""
    told = [ToolResultBlock(tool_use_id=c.id, content=c.input["path"]) for c in used(answer)]
    return row("user", *told, source="tool")


def paired(api: MessagesApi) -> dict[str, str]:
    """Return what was called for, and the result that the server matches with it."""
    blocks = [b for message in api.wire.read(api.last)["messages"] for b in message["content"]]
    found = {b["tool_use_id"]: b["content"] for b in blocks if b["type"] == "tool_result"}
    called = [b for b in blocks if b["type"] == "tool_use"]
    assert len(found) == len(called)
    return {b["input"]["path"]: found[b["id"]] for b in called}


@pytest.mark.parametrize(
    "given", [("call_0", "call_0"), ("", ""), ("a b", "a_b"), ("x" * 200,) * 2]
)
async def test_each_call_has_an_id_of_its_own(
    api: MessagesApi, model: LanguageModel, given: tuple[str, str]
) -> None:
    """S-12: twice in an answer, in a later one, without any, or the same once it is cleaned: a
    strict server refuses the history, and a lenient one mixes up the results."""
    rows = [user("read them")]
    for paths in (("a", "b"), ("c", "d")):
        api.replies.append(Reply(blocks=tuple(use(*one) for one in zip(given, paths, strict=True))))
        answer = await ask(model, *rows)
        assert [call.input["path"] for call in used(answer)] == list(paths)
        rows += [row("assistant", *answer.blocks), results(answer)]
    ids = [block.id for one in rows for block in one.blocks if isinstance(block, ToolUseBlock)]
    assert len(set(ids)) == 4
    await ask(model, *rows)
    assert paired(api) == {path: path for path in "abcd"}


async def test_a_history_that_has_an_id_twice_goes_on(
    api: MessagesApi, model: LanguageModel
) -> None:
    """Stored before ids were made unique: the thread works again, each result with its call."""
    rows = [user("read them")]
    for paths in ("ab", "cd"):
        blocks = [
            ToolUseBlock(id="call_0", name="read_file", input={"path": path}) for path in paths
        ]
        told = [ToolResultBlock(tool_use_id="call_0", content=path) for path in paths]
        rows += [row("assistant", *blocks), row("user", *told, source="tool")]
    assert text_of(await ask(model, *rows))
    assert paired(api) == {path: path for path in "abcd"}


HALF = '{"delay_seconds": 36'
WRONG = [
    (HALF, "no complete JSON"),
    ('{"delay_seconds": tomorrow}', "no complete JSON"),
    ("[1, 2]", "no object"),
    ('"x"', "no object"),
    ("null", "no object"),
    ('{"a":' * 80 + "1" + "}" * 80, "too deeply"),
]


@pytest.mark.parametrize(("raw", "problem"), WRONG)
async def test_what_is_no_whole_call_is_none(
    api: MessagesApi, model: LanguageModel, raw: str, problem: str
) -> None:
    """S-12: half a number is a number, too. The answer is whole, whatever stands in the call."""
    api.replies.append(calls("schedule_followup", raw, text="One moment."))
    answer = await ask(model)
    (call,) = used(answer)
    assert (text_of(answer), answer.stop_reason, call.input) == ("One moment.", "tool_use", {})
    assert problem in call.malformed
    assert raw[:20] in call.malformed
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        fails(500, error_message="error parsing tool call: raw='{a}]', err=invalid character"),
        fails(400, error_code="tool_use_failed", error_message="Failed to call a function, {a}]"),
        says("so", fault="error_event", error_message="Failed to parse tool call: {a}]"),
    ],
)
async def test_a_call_that_its_own_server_can_not_read_is_one_like_others(
    api: MessagesApi, model: LanguageModel, reply: Reply
) -> None:
    """Ollama, Groq and llama.cpp answer 500 or 400 for what their own model wrote."""
    api.replies.append(reply)
    answer = await ask(model, user("go"))
    (call,) = used(answer)
    assert (answer.stop_reason, answer.usage.tokens, call.input) == ("tool_use", 0, {})
    assert "{a}]" in call.malformed
    told = ToolResultBlock(tool_use_id=call.id, content="Call again.", is_error=True)
    rows = [user("go"), row("assistant", call), row("user", told, source="tool")]
    assert text_of(await ask(model, *rows))
    api.replies.append(reply)
    assert (await fail(model, tools=())).kind == SPOILED


async def test_a_call_that_can_not_be_read_is_told_to_the_model_and_harms_nobody(
    tmp_path: Path, way: Way, api: MessagesApi
) -> None:
    """S-12, C-5: it calls again, and no reminder comes of half a number. Who never gets it right is
    told so twice; then its person is, in plain words, and the model stays there for everybody."""
    bad = calls("schedule_followup", HALF, call_id="c")
    good = calls("schedule_followup", {"delay_seconds": 3600, "reason": "tea"}, call_id="c")

    def behave(body: dict[str, Any]) -> Reply:
        said = str(body["messages"])
        if "hopeless" in said:
            return bad
        if "in an hour" not in said or "Scheduled" in said:
            return says("All set.")
        return good if "Call again" in said else bad

    api.behave = behave
    models = {"m": {"provider": way.name, "model": "model-test", "base_url": api.url}}
    async with running_stack(
        tmp_path, ("cortex", "scheduler", "delivery"), model={"main": "m"}, models=models
    ) as stack:
        ann, ben = [await Talk.open(stack, f"{one}:vigil:t") for one in ("ann", "ben")]
        await ann.ended(await ann.say("remind me in an hour"))
        await ann.until(lambda: ann.texts == ["All set."])
        (open_,) = ann.turns[-1].state.follow_ups.values()
        assert (open_.fire_at - ann.turns[-1].created_at).total_seconds() > 3500
        told = str(api.wire.read(api.requests[1].body)["messages"])
        assert "no complete JSON" in told
        assert HALF[1:15] in told
        for _ in range(2):
            before = len(api.requests)
            await ben.ended(await ben.say("hopeless"))
            assert len(api.requests) == before + 3
        await ben.until(lambda: ben.texts == [MALFORMED] * 2)
        assert [n.code for t in ben.turns for n in t.notes].count("malformed_calls") == 6
        assert await circuits_of(stack) == []
        await ann.ended(await ann.say("thanks"))
        await ann.until(lambda: ann.texts == ["All set."] * 2)
        for talk in (ann, ben):
            await talk.close()
