"""What a person trusts from now on, and letters that they point at (FLOW F-2, F-15)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.pictures import png
from tests.support.world import Person, World, running_world
from vigil.cli.chat.letters import Pointing
from vigil.contracts import Control, ControlPayload, ExternalBlock, encode
from vigil.contracts.events import LetterName
from vigil.sdk.client import Client
from vigil.subjects import SessionKey
from vigil.words import slash


async def happens(person: Person, content: str, id_: str) -> dict[str, Any]:
    """Post an event as that person's program does, and wait until the session has done with it."""
    event = {
        "specversion": "1.0",
        "id": id_,
        "source": "https://ci.example/",
        "type": "build",
        "subject": str(person.key),
        "datacontenttype": "text/plain",
        "data": content,
    }
    answer = await person.http.post(
        "/api/events",
        content=json.dumps(event),
        headers={"content-type": "application/cloudevents+json"},
    )
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    await person.talk.ended(found["seq"])
    await person.world.at_rest()
    return found


async def letters(http: httpx2.AsyncClient, key: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await http.get(f"/api/sessions/{key}/letters")).json()["letters"]
    return found


async def test_a_source_is_trusted_from_now_on_until_that_is_ended(world: World) -> None:
    """F-15: by its exact name, by a person, for themselves; what was decided stays so."""
    ann = await world.person()
    bob = await world.person("bob:vigil:t1")
    await happens(ann, "the build is red", "1")
    assert ann.talk.said[-1].is_tainted
    answered, event = await letters(ann.http, ann.key)
    assert (event["source"], event["size"], event["is_trusted"]) == ("api:ann", 16, False)
    assert (answered["what"], answered["source"]) == ("what you answered", "")
    assert event["turn_seq"] == answered["turn_seq"]

    made = await ann.http.post("/api/trust", json={"source": event["source"]})
    assert made.status_code == 201, made.text
    assert "counts as your own" in made.json()["meaning"]
    assert (await bob.http.get("/api/trust")).json() == {"sources": []}
    await world.advance(60)
    second = await happens(ann, "the build is green", "2")
    assert not ann.talk.said[-1].is_tainted
    assert len(await letters(ann.http, ann.key)) == 2, "it is none"
    assert (await letters(ann.http, ann.key))[1]["is_trusted"]
    await happens(bob, "the build is blue", "3")
    assert bob.talk.said[-1].is_tainted, "another's, of the same sender"

    id_ = made.json()["id"]
    assert (await bob.http.delete(f"/api/trust/{id_}")).status_code == 404
    assert (await ann.http.delete(f"/api/trust/{id_}")).status_code == 200
    await world.advance(60)
    await happens(ann, "the build is pink", "4")
    assert ann.talk.said[-1].is_tainted, "from the next message on"
    again = await happens(ann, "the build is green", "2")
    assert again == second, "what is sent again is the same, whatever is trusted by now"
    trusted = [
        block.event.is_trusted
        for turn in ann.talk.turns
        for row in turn.rows
        for block in row.blocks
        if isinstance(block, ExternalBlock)
    ]
    assert trusted == [False, True, False]


async def test_a_reply_that_points_opens_that_letter_and_no_other(world: World) -> None:
    """F-2: by the name that people are shown; what answers it is swayed, what comes later isn't."""
    ann = await world.person()
    await happens(ann, "the build is red", "1")
    await world.advance(60)
    await happens(ann, "the tests are grey", "2")
    (_, tests), (_, build) = [(await letters(ann.http, ann.key))[n : n + 2] for n in (0, 2)]
    await world.advance(3600)
    await ann.exchange("hello")
    assert not ann.talk.turns[-1].is_swayed
    await ann.exchange(f"open {build['handle']}: say it shorter")
    assert ann.talk.turns[-1].is_swayed
    (opened,) = world.agent.requests[-1].situation.letters
    assert (opened.handle, opened.text) == (build["handle"], "the build is red")
    assert tests["handle"] != build["handle"]
    await world.advance(3600)
    await ann.exchange("hello")
    assert not ann.talk.turns[-1].is_swayed


def shown_(world: World) -> str:
    """Return what the model was shown last, as text."""
    return str(world.agent.requests[-1].rows)


async def test_a_letter_that_is_fine_is_the_persons_own_word_for_word(world: World) -> None:
    """F-15: shown as it is to every later loop, which it doesn't sway; another of that name isn't,
    nor what the agent made of it, nor another's."""
    ann, bob = await world.person(), await world.person("bob:vigil:t1")
    await happens(ann, "the build is red", "1")
    (answered, event) = await letters(ann.http, ann.key)
    path = f"/api/sessions/{ann.key}/letters/{event['handle']}/vouch"
    assert (await bob.http.post(path)).status_code == 404
    assert (await ann.http.post(path.replace("a1/", "z9/"))).status_code == 404
    await world.advance(3600)
    await ann.exchange("hello")
    assert "the build is red" not in shown_(world)
    answer = await ann.http.post(path)
    assert answer.status_code == 202, answer.text
    await ann.talk.ended(answer.json()["seq"])
    assert [one["is_vouched"] for one in await letters(ann.http, ann.key)] == [False, True]
    await ann.exchange("and now?")
    assert "the person vouches for it:]\\nthe build is red" in shown_(world)
    assert f"[Letter {answered['handle']}: what you answered" in shown_(world)
    assert "re: the build is red" not in shown_(world)
    assert not ann.talk.turns[-1].is_swayed
    assert not ann.talk.said[-1].is_tainted
    # What says that it vouches for another text of that name opens nothing.
    forged = ControlPayload(
        op="vouch", letter=LetterName(handle=answered["handle"], digest="0" * 32)
    )
    event_id = "forged"
    control = Control(
        id=event_id, session_key=ann.key, created_at=world.clock.now(), payload=forged
    )
    key = SessionKey.parse(ann.key)
    await ann.talk.ended(await ann.talk.store(key.in_event("control"), encode(control)))
    await ann.exchange("and then?")
    assert "re: the build is red" not in shown_(world)


async def fine(person: Person, handle: str, *, is_fine: bool = True, **query: str) -> int:
    """Vouch for a letter, or no more; return the status of the answer."""
    path = f"/api/sessions/{person.key}/letters/{handle}/vouch"
    answer = await person.http.request("POST" if is_fine else "DELETE", path, params=query)
    if answer.status_code == 202:
        await person.talk.ended(answer.json()["seq"])
    return answer.status_code


async def test_a_letter_is_vouched_for_as_it_was_read_and_until_that_is_taken_back(
    world: World,
) -> None:
    """F-15: whole as the agent would see it, and by the digest of what was read; then it's closed
    to every later loop again."""
    ann, bob = await world.person(), await world.person("bob:vigil:t1")
    await happens(ann, "the build is red", "1")
    await happens(ann, "the tests are grey", "2")
    path = f"/api/sessions/{ann.key}/letters"
    for handle in ("a1", "b1"):
        (told,) = [one for one in await letters(ann.http, ann.key) if one["handle"] == handle]
        shown = (await ann.http.get(f"{path}/{handle}")).json()
        assert (len(shown["text"]), shown["what"]) == (told["size"], told["what"])
    assert shown["text"] == "re: the build is red"
    assert (await bob.http.get(f"{path}/a1")).status_code == 404
    assert await fine(ann, "a1", digest=shown["digest"]) == 409, "another letter's"
    assert await fine(ann, "a1", is_fine=False) == 202, "nobody vouched for it"
    await world.advance(3600)
    for is_fine in (True, False, True, False):
        assert await fine(ann, "a1", is_fine=is_fine) == 202
        await ann.exchange("and now?")
        assert ("the build is red" in shown_(world)) is is_fine
        assert "grey" not in shown_(world)
        assert not ann.talk.turns[-1].is_swayed
    assert (await bob.http.delete(f"{path}/a1/vouch")).status_code == 404


async def test_what_was_vouched_for_is_open_in_a_fork_and_nothing_else_is(world: World) -> None:
    """F-15: as it was at that turn, and in a fork of the fork; what is taken back later stays in
    what had begun with it, and what is vouched for later isn't in a fork of before."""
    ann = await world.person(has_socket=False)
    await happens(ann, "the build is red", "1")
    await world.advance(3600)
    await ann.exchange("hello")
    before = (await ann.transcript())[-1]["turn_seq"]
    await fine(ann, "a1")
    await happens(ann, "the tests are grey", "2")
    await world.advance(3600)

    async def fork(one: Person, turn: int | None = None) -> Person:
        made = await one.http.post(f"/api/sessions/{one.key}/forks", json={"turn": turn})
        return await world.person(made.json()["session_key"], has_socket=False)

    other, earlier = await fork(ann), await fork(ann, before)
    await fine(ann, "a1", is_fine=False)
    for one, is_open in (
        (other, True),
        (await fork(other), True),
        (earlier, False),
        (await fork(ann), False),
    ):
        await one.exchange("What do you know?")
        assert ("the build is red" in shown_(world)) is is_open, one.key
        assert "grey" not in shown_(world)
        assert "re: " not in shown_(world).replace("re: hello", "")
        assert not one.talk.turns[-1].is_swayed


class Heard:
    """A screen of which the notices count."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def token(self, frame: dict[str, Any]) -> None: ...

    def progress(self, frame: dict[str, Any]) -> None: ...

    def message(self, frame: dict[str, Any]) -> None: ...

    def notice(self, text: str) -> None:
        self.notices.append(text)


async def test_a_chat_shows_letters_opens_them_and_trusts(world: World) -> None:
    """F-2, F-15: by names that are shown, and only by those."""
    ann, screen = await world.person(), Heard()
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    client = Client(f"http://127.0.0.1:{world.gate.port}", ann.token)
    chat = Pointing(client, ann.key, "vigil", screen, say)

    async def obey(line: str) -> None:
        order = slash.read(line, is_terminal=True)
        assert isinstance(order, slash.SlashOrder), line
        await chat.obey(order)

    assert slash.read("what about /letters?", is_terminal=True) == slash.PlainWords(
        "what about /letters?"
    )
    await obey("/letters")
    await happens(ann, "the build is red", "1")
    for line in ("/letters", "/letters a1", "/open", "/trust z9", "/trust b1"):
        await obey(line)
    assert screen.notices[0] == "there are no letters"
    assert screen.notices[1].startswith("b1  ")
    assert "a1  " in screen.notices[2]
    assert "an event from api:ann, from api:ann, 16 characters" in screen.notices[2]
    assert screen.notices[3:5] == [slash.COMMANDS[one].usage for one in ("letters", "open")]
    assert "there is no letter z9" in screen.notices[5]
    assert "from nothing that has a name" in screen.notices[6]
    assert (await ann.http.get("/api/trust")).json() == {"sources": []}
    for line in ("/open a1 say it shorter", "/reply A1", "/trust a1"):
        await obey(line)
    assert said == ["open a1: say it shorter", "open a1"]
    assert "counts as your own" in screen.notices[-1]
    assert "`vigil trust remove api:ann` ends it" in screen.notices[-1]
    assert [one["source"] for one in await asyncio.to_thread(client.trusted)] == ["api:ann"]
    await obey("/fine a1 yes")
    assert screen.notices[-2] == "the build is red", "it is read first"
    assert "`/fine a1 yes`: that counts as yours" in screen.notices[-1]
    for answer, is_vouched in (("yes", True), ("no", False)):
        await obey(f"/fine a1 {answer}")
        await world.at_rest()
        found = await letters(ann.http, ann.key)
        assert [one["is_vouched"] for one in found] == [False, is_vouched]
    assert "a1 is closed again" in screen.notices[-1]


async def test_what_can_not_be_trusted_is_refused(world: World) -> None:
    """No patterns, nothing that anybody on the way may write, nothing without an exact name."""
    ann = await world.person()
    for source in (
        "",
        "*",
        "hook:*",
        "hook:",
        "hook:a b",
        "mcp:mail__send",
        "channel:mail",
        "api:ann\n",
        "url:http://example.org/",
        "url:ftp://example.org/",
        "url:https://",
        "url:https://10.0.0.1/",
        "url:https://ann:pw@example.org/",
        "feed:example.org",
        "files:*",
        "command:date",
    ):
        answer = await ann.http.post("/api/trust", json={"source": source})
        assert (answer.status_code, answer.json()["field"]) == (422, "source"), source
    assert (await ann.http.get("/api/trust")).json() == {"sources": []}
    crew = await ann.http.post("/api/trust", json={"source": "hook:ci", "agentId": "a.b"})
    assert crew.status_code == 422


async def test_a_file_that_is_fine_sways_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-15: what a file shows may be by anybody, unless its person vouches for it; then it's shown
    to later loops, and another file isn't."""
    model = {"main": "claude-sonnet-5-5"}  # takes images
    async with running_world(tmp_path, monkeypatch, model=model) as world:
        ann = await world.person(has_socket=False)
        for name, width in (("plan.png", 8), ("other.png", 9)):
            picture = png(width, 6)
            made = await ann.http.post("/api/attachments", params={"name": name}, content=picture)
            await ann.exchange("see", attachments=[made.json()["hash"]])
            assert ann.talk.turns[-1].is_swayed
            await world.advance(3600)
        files = [one for one in await letters(ann.http, ann.key) if "image" in one["what"]]
        assert ["9x6" in files[0]["what"], "8x6" in files[1]["what"]] == [True, True]
        assert (files[1]["size"], files[1]["source"]) == (0, "")
        for is_fine in (False, True, False):
            assert await fine(ann, files[1]["handle"], is_fine=is_fine) == 202
            await ann.exchange("What does it show?")
            named = [name for name in ("plan.png", "other.png") if name in shown_(world)]
            assert named == (["plan.png"] if is_fine else []), "it can't see it, and is told which"
            assert not ann.talk.turns[-1].is_swayed
