"""Tools of the caller's own through OpenAI's SDK, unchanged: asked for, run there, gone on with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import openai
import pytest

from services.cortex.model import ModelRequest
from tests.acceptance.test_openai_programs import agent, history, running, threads, user
from tests.support.agent import ask, ask_in_steps
from tests.support.world import Person, World
from vigil.contracts import ToolResultBlock

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"town": {"type": "string"}},
    "required": ["town"],
}
WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "function": {"name": "weather", "description": "How warm it is", "parameters": SCHEMA},
}
WARM: Final = ("caller__weather", {"town": "Rome"})
COLD: Final = ("caller__weather", {"town": "Oslo"})


def results(request: ModelRequest) -> list[str]:
    """Return what the model is shown that calls gave."""
    blocks = [block for row in request.rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


async def called(client: openai.AsyncOpenAI, turns: list[Any], **more: Any) -> dict[str, Any]:
    """Have an answer that asks for calls, as the program keeps it."""
    done = await client.chat.completions.create(
        **({"model": "vigil", "messages": turns, "tools": [WEATHER]} | more)
    )
    assert done.choices[0].finish_reason == "tool_calls"
    return done.choices[0].message.model_dump(exclude_none=True)


def told(message: dict[str, Any], *contents: str) -> list[dict[str, Any]]:
    """Return what the program says of the calls of a message."""
    pairs = zip(message["tool_calls"], contents, strict=True)
    return [{"role": "tool", "tool_call_id": one["id"], "content": text} for one, text in pairs]


async def answer(client: openai.AsyncOpenAI, turns: list[Any], **more: Any) -> str:
    done = await client.chat.completions.create(
        **({"model": "vigil", "messages": turns, "tools": [WEATHER]} | more)
    )
    assert done.choices[0].finish_reason == "stop"
    return str(done.choices[0].message.content)


async def test_a_program_runs_its_own_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One world for all of it: what is refused, what is asked for and gone on with, Responses."""
    async with running(tmp_path, monkeypatch) as (world, ann, client):
        await goes_on(world, ann, client)
        await is_refused_by_field_and_reason(world, ann, client)
        await goes_on_by_responses(world, client)


async def goes_on(world: World, ann: Person, client: openai.AsyncOpenAI) -> None:
    """Asked for, run, told, gone on with: whole and streamed, repeated, at once, too late."""
    turns: list[Any] = [user(ask(WARM, COLD))]
    first = await called(client, turns)
    assert first.get("content") is None
    names = [(c["function"]["name"], c["function"]["arguments"]) for c in first["tool_calls"]]
    assert names == [("weather", '{"town":"Rome"}'), ("weather", '{"town":"Oslo"}')]
    # They stand last, so that all before them is what other conversations have.
    shown = [one.name for one in world.agent.requests[-1].tools]
    assert shown[-1] == "caller__weather"
    # The same request is told the same calls, as its program may have lost the answer.
    again = await called(client, turns)
    assert again["tool_calls"] == first["tool_calls"]
    assert len(await threads(ann)) == 1
    turns += [first, *told(first, "21", "4\0")]
    assert await answer(client, turns) == "Done."
    assert results(world.agent.requests[-1]) == ["21", "4?"]
    asked = len(world.agent.requests)
    assert await answer(client, turns) == "Done."
    assert len(world.agent.requests) == asked, "told again, and not thought about again"
    turns += [agent("Done."), user("And now")]
    assert await answer(client, turns, tools=openai.NOT_GIVEN) == "re: And now"
    assert "caller__weather" not in [one.name for one in world.agent.requests[-1].tools]
    assert list((await threads(ann)).values()) == [2]
    # A program that leaves calls out of what it keeps goes on with the same conversation.
    kept = [one for one in turns if one["role"] != "tool" and not one.get("tool_calls")]
    kept += [agent("re: And now"), user("And then")]
    assert await answer(client, kept) == "re: And then"
    assert list((await threads(ann)).values()) == [3]
    # Once it is all over, the first request asks anew.
    anew = await called(client, turns[:1])
    assert anew["tool_calls"] != first["tool_calls"]

    # Streamed, in two steps, at two callers at once that tell different things.
    turns = [user(ask_in_steps([WARM], [COLD]))]
    stream = await client.chat.completions.create(
        model="vigil",
        messages=turns,
        tools=[WEATHER],
        stream=True,  # type: ignore[list-item]
    )
    chunks = [one async for one in stream]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    pieces = [c for one in chunks for c in one.choices[0].delta.tool_calls or ()]
    assert [one.index for one in pieces] == [0, 0]
    assert "".join(one.function.arguments or "" for one in pieces if one.function) == (
        '{"town":"Rome"}'
    )
    async with client.chat.completions.stream(
        model="vigil",
        messages=turns,
        tools=[WEATHER],  # type: ignore[list-item]
    ) as sdk:
        last = (await sdk.get_final_completion()).choices[0].message
    assert last.tool_calls is not None
    assert last.tool_calls[0].id == pieces[0].id
    turns.append(last.model_dump(exclude_none=True, exclude={"parsed"}))
    both = await asyncio.gather(
        *(called(client, [*turns, *told(turns[-1], text)]) for text in ("21", "22")),
        return_exceptions=True,
    )
    (second,) = [one for one in both if isinstance(one, dict)]
    (late,) = [one for one in both if isinstance(one, openai.BadRequestError)]
    assert late.param == "messages[2].tool_call_id"
    assert "isn't waited for any more" in str(late)
    turns += [*told(turns[-1], *results(world.agent.requests[-1])), second]
    # The person goes on without telling: nothing waits, and it is said so.
    turns.append(user("Forget it"))
    assert await answer(client, turns) == "re: Forget it"
    with pytest.raises(openai.BadRequestError, match="isn't waited for any more"):
        await answer(client, [*turns[:-1], *told(second, "4")])


REFUSED: Final[tuple[tuple[dict[str, Any], str, str], ...]] = (
    ({"tool_choice": "required"}, "tool_choice", "auto or none"),
    ({"tool_choice": {"type": "function", "function": {"name": "weather"}}}, "tool_choice", "auto"),
    ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name", "twice"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].function.type", "custom"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]},
     "tools[0].function.name", "letters"),
    ({"tools": [{"type": "function", "function": {"name": 57 * "a"}}]},
     "tools[0].function.name", "at most 56"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]},
     "tools[0].function.parameters", "of an object"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {"anyOf": []}}}]},
     "tools[0].function.parameters", "anyOf at the top"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {
        "properties": {"x": {"$ref": "https://a.example/s"}}}}}]},
     "tools[0].function.parameters", "nothing is fetched"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {
        "required": "x"}}}]}, "tools[0].function.parameters.required", "list of names"),
    ({"tools": [{"type": "function", "function": {"name": "a", "description": 40_000 * "x"}}]},
     "tools", "at most 32768 bytes"),
    ({"tools": [{"type": "function", "function": {"name": "a", "description": "\\\0"}}]},
     "tools", "NUL"),
    ({"tools": 65 * [WEATHER]}, "tools", "at most 64"),
    ({"messages": [user("hi"), {"role": "tool", "content": "x", "tool_call_id": "call_1"}]},
     "messages[1].tool_call_id", "no call"),
    ({"messages": [{"role": "tool", "content": [{"type": "image_url"}], "tool_call_id": "1"}]},
     "messages", "image_url"),
)  # fmt: skip


async def is_refused_by_field_and_reason(
    world: World, ann: Person, client: openai.AsyncOpenAI
) -> None:
    given: dict[str, Any] = {"model": "vigil", "messages": [user("hi")], "tools": [WEATHER]}
    before = len(await threads(ann))
    for change, field, words in REFUSED:
        with pytest.raises(openai.BadRequestError, match=words) as refused:
            await client.chat.completions.create(**(given | change))
        assert refused.value.param == field
    assert len(await threads(ann)) == before
    # Chosen none, there is none; told of one of two, or of another's, it's refused.
    assert await answer(client, [user("hi")], tool_choice="none") == "re: hi"
    assert "caller__weather" not in [one.name for one in world.agent.requests[-1].tools]
    turns: list[Any] = [user(ask(WARM, COLD))]
    asked = await called(client, turns)
    both = told(asked, "21", "4")
    with pytest.raises(openai.BadRequestError, match="no result of call_"):
        await answer(client, [*turns, asked, both[0]])
    with pytest.raises(openai.BadRequestError, match="has a result already"):
        await answer(client, [*turns, asked, both[0], both[0]])
    bob = client.with_options(api_key=await world.gate.token("bob"))
    with pytest.raises(openai.BadRequestError, match="no call of this agent's has this id"):
        await answer(bob, [*turns, asked, *both])
    # What came of it is followed by words: first the one, then the other.
    assert await answer(client, [*turns, asked, *both, user("Go on")]) == "re: Go on"
    assert results(world.agent.requests[-1]) == ["21", "4"]
    assert history(world.agent.requests[-1]) == [turns[0]["content"], "Done.", "Go on"]
    one = await called(client, [user(ask(WARM, COLD, COLD))], parallel_tool_calls=False)
    assert len(one["tool_calls"]) == 1


async def goes_on_by_responses(world: World, client: openai.AsyncOpenAI) -> None:
    """By the id of the answer, or with all that was said; whole and streamed."""
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA}
    first = await client.responses.create(model="vigil", input=ask(WARM), tools=[tool])
    (call,) = first.output
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments)) == ("weather", {"town": "Rome"})
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
    then = await client.responses.create(
        model="vigil", input=[output], previous_response_id=first.id, tools=[tool]
    )
    assert then.output_text == "Done."
    assert results(world.agent.requests[-1]) == ["21"]
    once_more = await client.responses.retrieve(then.id)
    assert once_more.model_dump(exclude={"tools", "tool_choice"}) == then.model_dump(
        exclude={"tools", "tool_choice"}
    )
    assert (await client.responses.retrieve(first.id)).output == first.output
    (given_item,) = (await client.responses.input_items.list(then.id)).data
    assert given_item.type == "function_call_output"
    assert (given_item.call_id, given_item.output) == (call.call_id, "21")
    (said_item,) = (await client.responses.input_items.list(first.id)).data
    assert said_item.type == "message"
    assert said_item.content[0].model_dump()["text"] == ask(WARM)
    with pytest.raises(openai.BadRequestError, match="DELETE /api/sessions/ann:vigil:chat-"):
        await client.responses.delete(first.id)
    bob = client.with_options(api_key=await world.gate.token("bob"))
    for one, id_ in ((bob, first.id), (client, "resp_x")):
        for asked_for in (one.responses.retrieve, one.responses.delete):
            with pytest.raises(openai.NotFoundError, match="no answer of this id"):
                await asked_for(id_)
    world.agent.held.add("Wait")
    async with client.responses.stream(model="vigil", input="Wait") as stream:
        begun = await anext(aiter(stream))
        assert begun.type == "response.created"
        await world.agent.thinking.wait()
        unready = await client.responses.retrieve(begun.response.id)
        assert (unready.status, unready.output) == ("in_progress", [])
        world.agent.gate.set()
        await stream.until_done()
    assert (await client.responses.retrieve(begun.response.id)).output_text == "re: Wait"
    with pytest.raises(openai.BadRequestError, match="isn't told anew"):
        await client.responses.retrieve(first.id, stream=True)
    assert then.id != first.id
    more = await client.responses.create(model="vigil", input="More", previous_response_id=then.id)
    assert more.output_text == "re: More"
    assert history(world.agent.requests[-1])[-2:] == ["Done.", "More"]
    said: list[Any] = [user(ask_in_steps([COLD]))]
    async with client.responses.stream(model="vigil", input=said, tools=[tool]) as stream:
        kinds = [one.type async for one in stream]
        last = await stream.get_final_response()
    assert "response.function_call_arguments.done" in kinds
    (asked,) = last.output
    assert asked.type == "function_call"
    given = asked.model_dump(exclude={"parsed_arguments"})
    said += [given, {**output, "call_id": asked.call_id}]
    # Whoever waits for it is in the log alone: another replica takes it up.
    await world.stack.stop("cortex")
    going = asyncio.create_task(client.responses.create(model="vigil", input=said))
    await world.stack.start("cortex")
    assert (await going).output_text == "Done."
    with pytest.raises(openai.BadRequestError, match="no call of this agent's") as refused:
        await client.responses.create(model="vigil", input=[{**output, "call_id": "call_x"}])
    assert refused.value.param == "input[0].call_id"
