"""An agent through OpenAI's own SDK, unchanged: what is new is said, and nothing twice."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import openai
import pytest

from services.cortex.model import ModelRequest
from services.gateway.completions.past import Past
from tests.support import agent as scripted
from tests.support import pictures
from tests.support.agent import ask, follow_up
from tests.support.pauses import pauses
from tests.support.world import Person, World, running_world
from vigil.contracts import Row, TextBlock
from vigil.erasure.theirs import filters_of
from vigil.settings import tokens

Turns = list[Any]
PNG: Final = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c63f8cfc0f01f00050001ff56c72f0d0000000049454e44ae426082"
    )
).decode()


def image(note: str) -> dict[str, Any]:
    data = base64.b64encode(pictures.png(1, 1, fill=note.encode())).decode()
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


@asynccontextmanager
async def running(
    home: Path, monkeypatch: pytest.MonkeyPatch, **sections: Any
) -> AsyncIterator[tuple[World, Person, openai.AsyncOpenAI]]:
    async with running_world(home, monkeypatch, **sections) as world:
        ann = await world.person(has_socket=False)
        base = f"{str(ann.http.base_url).rstrip('/')}/v1"
        async with openai.AsyncOpenAI(base_url=base, api_key=ann.token, max_retries=2) as client:
            yield world, ann, client


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def answer(client: openai.AsyncOpenAI, turns: Turns, **more: Any) -> str:
    done = await client.chat.completions.create(**({"model": "vigil", "messages": turns} | more))
    assert done.choices[0].finish_reason == "stop"
    return str(done.choices[0].message.content)


async def threads(ann: Person) -> dict[str, int]:
    """Return how many messages each conversation has that began there."""
    found = (await ann.http.get("/api/sessions")).json()["sessions"]
    return {
        one["session_key"].rpartition(":")[2]: one["messages"]
        for one in found
        if ":chat-" in one["session_key"]
    }


def history(request: ModelRequest) -> list[str]:
    """Return what the model is shown of the conversation."""
    texts = (
        "".join(b.text for b in row.blocks if isinstance(b, TextBlock)) for row in rows(request)
    )
    return [text for text in texts if text]


def rows(request: ModelRequest) -> list[Row]:
    return [row for row in request.rows if row.source in ("person", "agent")]


async def test_a_program_talks_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is shown the agent's own history, and each message once."""
    async with running(tmp_path, monkeypatch) as (world, ann, client):
        assert [one.id async for one in client.models.list()] == ["vigil"]
        turns: Turns = [{"role": "system", "content": "You are a pirate"}, user("Hello")]
        turns.append(agent(await answer(client, turns)))
        assert turns[-1]["content"] == "re: Hello"
        turns.append(user([{"type": "text", "text": "And now"}]))
        turns.append(agent(await answer(client, turns)))
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "And now"]
        assert "pirate" not in str(world.agent.requests[-1])
        assert list((await threads(ann)).values()) == [2]
        # Asked anew, and asked otherwise: an older version is taken back.
        assert await answer(client, turns[:-1]) == "re: And now"
        assert await answer(client, [*turns[:3], user("Or then")]) == "re: Or then"
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "Or then"]
        (thread,) = await threads(ann)
        shown = (await ann.http.get(f"/api/sessions/ann:vigil:{thread}")).json()["messages"]
        taken = [one["text"] for one in shown if one.get("taken_back_by")]
        assert taken == ["And now", "re: And now", "And now", "re: And now"]
        # Another conversation that begins with the same words is another.
        assert await answer(client, [user("Hello")]) == "re: Hello"
        assert len(await threads(ann)) == 2


async def test_a_reminder_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It's the same agent as anywhere: it comes back by itself, and is shown pictures."""
    async with running(tmp_path, monkeypatch) as (world, ann, client):
        said = await answer(client, [user(ask(follow_up("tea", 60, "The tea!")))])
        assert said == "Done."
        (thread,) = await threads(ann)
        talk = world.talk(f"ann:vigil:{thread}")
        await world.advance(61)
        await talk.until(lambda: talk.said[-1].text == "The tea!")
        parts = [
            {"type": "text", "text": "What is it"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ]
        assert (await answer(client, [user(parts)])).startswith("re: What is it")
        (new,) = set(await threads(ann)) - {thread}
        shown = (await ann.http.get(f"/api/sessions/ann:vigil:{new}")).json()["messages"]
        assert [one["type"] for one in shown[0]["attachments"]] == ["image/png"]


async def test_members_of_a_team_go_on_with_what_each_began_and_a_revoked_token_hears_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-4: the same words from two people, at once too, are two conversations; an answer that
    comes after its token ended goes to nobody, whole or streamed."""
    team = {"agents": {"desk": {"kind": "team", "members": ["ann", "bob"]}}}
    async with (
        running(tmp_path, monkeypatch, **team) as (world, _, ann),
        contextlib.AsyncExitStack() as stack,
    ):
        bob = await stack.enter_async_context(
            ann.with_options(api_key=await world.gate.token("bob"))
        )
        # The agent answers both the same, as those that greet do.
        words_of = scripted._text_of
        monkeypatch.setattr(scripted, "_text_of", lambda row: words_of(row).rpartition("] ")[2])
        begun = [user("Hi")]
        said = await asyncio.gather(*(answer(one, begun, model="desk") for one in (ann, bob)))
        assert said == ["re: Hi", "re: Hi"]
        begun.append(agent("re: Hi"))
        assert await answer(ann, [*begun, user("mine")], model="desk") == "re: mine"
        assert await answer(bob, [*begun, user("yours")], model="desk") == "re: yours"
        assert "[ann]" not in str(history(world.agent.requests[-1]))

        token = await world.gate.token("ann")
        late = await stack.enter_async_context(ann.with_options(api_key=token, max_retries=0))
        world.agent.held |= {"whole", "streamed"}
        whole = asyncio.create_task(answer(late, [user("whole")]))
        await world.agent.thinking.wait()
        world.agent.thinking.clear()
        streamed = await late.chat.completions.create(
            model="vigil",
            messages=[user("streamed")],
            stream=True,  # type: ignore[list-item]
        )
        await tokens.revoke(world.gate.operator, token)
        client = await world.gate.http(token)
        async with asyncio.timeout(30):
            pause_s = pauses()
            while (await client.get("/api/me")).status_code != 401:
                await asyncio.sleep(next(pause_s))
        world.agent.gate.set()
        with pytest.raises(openai.AuthenticationError, match="has ended"):
            await whole
        with pytest.raises(openai.APIError, match="has ended"):
            assert not [one.choices[0].delta.content async for one in streamed]


REFUSED: Final[tuple[tuple[dict[str, Any], str, str], ...]] = (
    ({"functions": [{"name": "x"}]}, "functions", "name them as tools"),
    ({"n": 2}, "n", "must be 1"),
    ({"response_format": {"type": "json_object"}}, "response_format", "of type text"),
    ({"messages": [{"role": "assistant", "content": "hi"}]}, "messages", "must end with"),
    ({"messages": [{"role": "function", "content": "x", "name": "y"}]},
     "messages[0].role", "isn't taken"),
    ({"messages": [user([{"type": "image_url", "image_url": {"url": "https://a.example/b"}}])]},
     "image_url", "nothing is fetched"),
    ({"messages": [user([{"type": "input_audio", "input_audio": {}}])]}, "messages", "audio"),
    ({"messages": [user("")]}, "messages", "empty"),
    ({"messages": "hi"}, "messages", "array"),
)  # fmt: skip


async def streams_with_usage(ann: Person, client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="vigil",
        messages=[user("Hello")],  # type: ignore[list-item]
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert said == "re: Hello"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks[:-1]][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 2
    assert len({one.id for one in chunks}) == 1
    turns = [user("Hello"), agent(said), user("And?")]
    assert await answer(client, turns) == "re: And?"
    assert list((await threads(ann)).values()) == [2]


async def says_once_what_was_lost(world: World, ann: Person, client: openai.AsyncOpenAI) -> None:
    """The SDK sends a request again whose answer doesn't come: that's the same message."""
    before = await threads(ann)
    world.agent.held.add("Lost")
    impatient = client.with_options(timeout=0.7, max_retries=0)
    with pytest.raises(openai.APITimeoutError):
        await answer(impatient, [user("Lost")])
    waiting = asyncio.create_task(answer(client, [user("Lost")]))
    await world.agent.thinking.wait()
    world.agent.gate.set()
    assert await waiting == "re: Lost"
    assert [n for one, n in (await threads(ann)).items() if one not in before] == [1]


async def refuses_what_it_cant_do(ann: Person, client: openai.AsyncOpenAI) -> None:
    given: dict[str, Any] = {"model": "vigil", "messages": [user("hi")]}
    for change, field, words in REFUSED:
        for more in ({}, {"stream": True}):
            with pytest.raises(openai.BadRequestError, match=words) as refused:
                await client.chat.completions.create(**(given | change | more))
            assert refused.value.param == field
    with pytest.raises(openai.NotFoundError, match="there is: vigil"):
        await client.chat.completions.create(**(given | {"model": "gpt-x"}))
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="nope").models.list()
    assert not await threads(ann)


async def test_it_streams_refuses_and_says_once_what_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (world, ann, client):
        await refuses_what_it_cant_do(ann, client)
        await streams_with_usage(ann, client)
        await says_once_what_was_lost(world, ann, client)


REFUSED_RESPONSES: Final[tuple[tuple[dict[str, Any], str, str], ...]] = (
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "only functions"),
    ({"background": True}, "background", "must be false"),
    ({"conversation": "conv_1"}, "conversation", "previous_response_id"),
    ({"prompt": {"id": "p"}}, "prompt", "isn't taken"),
    ({"text": {"format": {"type": "json_object"}}}, "text.format", "of type text"),
    ({"text": {"format": "json"}}, "text.format", "of type text"),
    ({"input": [user([image(str(n)) for n in range(11)])]}, "attachments", "at most 10"),
    ({"input": []}, "input", "must end with"),
    ({"input": [{"type": "item_reference", "id": "1"}]}, "input[0].type", "isn't taken"),
    ({"input": [user([{"type": "input_file", "file_id": "1"}])]}, "input", "input_file"),
    ({"previous_response_id": "resp_x"}, "previous_response_id", "no answer of this agent"),
)  # fmt: skip


async def test_responses_go_on_by_their_ids_or_by_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same agent over OpenAI's newer interface: whole, streamed, asked anew, refused."""
    async with running(tmp_path, monkeypatch) as (world, ann, client):
        first = await client.responses.create(
            model="vigil", input="Hello", instructions="Be a pirate"
        )
        assert (first.output_text, first.status) == ("re: Hello", "completed")
        assert first.usage is not None
        assert first.usage.total_tokens == 2
        second = await client.responses.create(
            model="vigil", input="And now", previous_response_id=first.id
        )
        assert second.output_text == "re: And now"
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "And now"]
        assert "pirate" not in str(world.agent.requests[-1])
        # A program that sends all of it, with what came back, goes on with the same conversation.
        said: list[Any] = [user("Hello"), *(one.model_dump() for one in first.output)]
        said.append(user([{"type": "input_text", "text": "Or then"}]))
        async with client.responses.stream(model="vigil", input=said) as stream:
            kinds = [one.type async for one in stream]
            last = await stream.get_final_response()
        assert last.output_text == "re: Or then"
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        assert kinds.count("response.output_text.delta") > 0
        assert history(world.agent.requests[-1]) == ["Hello", "re: Hello", "Or then"]
        third = await client.responses.create(
            model="vigil", input="Then", previous_response_id=last.id
        )
        assert third.output_text == "re: Then"
        assert list((await threads(ann)).values()) == [4]  # with the one that was taken back
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
        seen = await client.responses.create(
            model="vigil",
            input=[user([{"type": "input_text", "text": "What is it"}, picture])],  # type: ignore[list-item]
        )
        assert seen.output_text.startswith("re: What is it")
        assert len(await threads(ann)) == 2
        bob = client.with_options(api_key=await world.gate.token("bob"))
        with pytest.raises(openai.BadRequestError, match="has this id"):
            await bob.responses.create(model="vigil", input="Go on", previous_response_id=first.id)
        given: dict[str, Any] = {"model": "vigil", "input": "hi"}
        for change, field, words in REFUSED_RESPONSES:
            for more in ({}, {"stream": True}):
                with pytest.raises(openai.BadRequestError, match=words) as refused:
                    await client.responses.create(**(given | change | more))
                assert refused.value.param == field
        assert len(await threads(ann)) == 2
        admin = world.gate.admin
        uploads = await admin.read("UPLOADS", filters_of("ann")["UPLOADS"])
        assert len({one.subject.split(".")[2] for one in uploads}) == 1, "kept, and then refused"
        # The same picture twice is one; what nobody expected ends the stream, and is no wait.
        twice = [user([{"type": "input_text", "text": "Both"}, image("a"), image("a")])]
        both = await client.responses.create(model="vigil", input=twice)  # type: ignore[arg-type]
        assert both.output_text.startswith("re: Both")
        monkeypatch.setattr(Past, "answered", broken)
        with pytest.raises(openai.InternalServerError):
            await client.with_options(max_retries=0).responses.create(
                model="vigil", input="Hi", stream=True
            )


async def broken(*_: object) -> int:
    raise ArithmeticError("nobody expects it")
