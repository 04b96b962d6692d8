"""A conversation that its person deletes: hidden at once, then gone from wherever it was stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from services.scheduler import deletions
from tests.keeping.test_erase import canaries
from tests.support.agent import ask, follow_up
from tests.support.cli import Cli
from tests.support.outside import say_from_outside
from tests.support.pauses import pauses
from tests.support.pictures import png
from tests.support.remembering import contents, look
from tests.support.world import ANN, Person, StoppedClock, running_world
from vigil.marks import thread_mark
from vigil.marks.thread_mark import Deletion
from vigil.subjects import SessionKey

TEXT = "CANARYtext"
OTHER = "ann:vigil:other"


async def deleted(person: Person, **query: object) -> dict[str, Any]:
    """Delete a conversation, and wait until it is."""
    path = f"/api/sessions/{person.key}"
    answer = await person.http.request("DELETE", path, params=query)
    assert answer.status_code == 202, answer.text
    await until_deleted(person)
    return dict(answer.json())


async def until_deleted(person: Person) -> None:
    key = SessionKey.parse(person.key)
    async with asyncio.timeout(60):
        pause_s = pauses()
        while True:
            mark = await thread_mark.find(person.world.admin, key)
            assert mark is not None
            if not mark.is_open:
                return
            await asyncio.sleep(next(pause_s))


async def keys_of(http: httpx2.AsyncClient) -> list[str]:
    """Return the conversations that are listed."""
    found = (await http.get("/api/sessions")).json()["sessions"]
    return [one["session_key"] for one in found]


def streams(home: Path) -> list[str]:
    """Return the files of the broker's records that hold something of the text."""
    return [one for one in canaries(home) if one.endswith((".blk", ".db"))]


@pytest.mark.usefixtures("own_broker")
async def test_a_deleted_conversation_is_nowhere_and_its_name_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another conversation of the person's is as it was; strangers learn nothing."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await world.person(has_socket=False)
        other = await world.person(OTHER, has_socket=False)
        bob = await world.person("bob:vigil:main", has_socket=False)
        await ann.exchange(ask(follow_up("tea", 600, f"{TEXT} tea", keep=True)))
        await ann.exchange(f"{TEXT} is my secret")
        await other.exchange("something else")
        before = await other.transcript()
        said_id = (await ann.transcript())[-1]["id"]
        assert streams(tmp_path), "the positive control: it is in the files of the log"
        stranger = await bob.http.request("DELETE", f"/api/sessions/{ann.key}")
        assert stranger.status_code == 404
        nothing = await ann.http.request("DELETE", "/api/sessions/ann:vigil:never")
        assert nothing.status_code == 404

        answer = await deleted(ann)
        assert answer["timers_ended"] == 1
        gone = await ann.http.get(f"/api/sessions/{ann.key}")
        assert gone.status_code == 410
        assert "was deleted at" in gone.json()["detail"]
        assert ann.key not in await keys_of(ann.http)
        assert streams(tmp_path) == []
        told = await ann.http.get(f"/api/why/{said_id}")
        assert told.status_code == 404
        proof = await thread_mark.find(world.admin, SessionKey.parse(ann.key))
        assert proof is not None
        assert proof.by == "ann"
        assert proof.deleted["SESSIONS"] > 4
        assert proof.deleted["TIMERS"] >= 1
        again = await ann.http.request("DELETE", f"/api/sessions/{ann.key}")
        assert again.status_code == 200
        assert again.json()["done_at"]
        assert await other.transcript() == before

        # Its name is free: nothing of the former one comes back, its reminder neither.
        await ann.exchange("hello anew")
        await world.advance(1200)
        lines = await ann.transcript()
        assert [line["text"] for line in lines] == ["hello anew", "re: hello anew"]
        assert TEXT not in world.agent.text_of(world.agent.requests[-1])


async def test_while_it_is_deleted_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is shown or taken in from the first moment on, whoever deletes the records."""
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await world.person(has_socket=False)
        await ann.exchange("hello")
        await world.gate.stack.stop("scheduler")
        path = f"/api/sessions/{ann.key}"
        answer = await ann.http.request("DELETE", path)
        assert answer.status_code == 202
        assert "done_at" not in answer.json()
        for one in ("", "/timeline", "/timers", "/calls", "/now"):
            assert (await ann.http.get(path + one)).status_code == 410, one
        said = await ann.http.post(f"{path}/messages", json={"text": "more"})
        assert said.status_code == 410
        assert "being deleted" in said.json()["detail"]
        body = {"message": "more", "userId": "ann", "threadId": SessionKey.parse(ann.key).thread}
        assert (await ann.http.post("/api/chat", json=body)).status_code == 410
        assert (await ann.http.post(f"{path}/forks", json={})).status_code == 410
        assert await keys_of(ann.http) == []
        assert (await ann.http.request("DELETE", path)).status_code == 202


@pytest.mark.usefixtures("own_broker")
async def test_what_came_out_of_it_is_told_of_and_its_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory stays unless it is to be forgotten, a task goes on, a file that another conversation
    names, too; the command says so."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann = await world.person(has_socket=False)
        other = await world.person(OTHER, has_socket=False)
        hashes = [await uploaded(ann.http, n) for n in (10, 11)]
        await ann.exchange(ask(("memory_save", {"content": "The key is under the mat"})))
        await ann.exchange(ask(("task_create", {"title": "Tidy up", "description": "the notes"})))
        await ann.say("look at these", attachments=hashes)
        await other.say("and at this", attachments=hashes[:1])
        await world.at_rest()
        (task,) = (await ann.http.get("/api/tasks")).json()["tasks"]
        (memory,) = (await look(ann.http))["memories"]

        url = f"http://127.0.0.1:{world.gate.port}"
        cli = Cli(tmp_path / "cli", VIGIL_URL=url, VIGIL_TOKEN=ann.token)
        told = await asyncio.to_thread(cli, "delete", ann.key, "--yes")
        assert "1 memory came from it: kept; --memories forgets them, too" in told.stderr
        await until_deleted(ann)
        assert [await status_of(ann.http, one) for one in hashes] == [200, 404]
        assert contents(await look(ann.http)) == ["The key is under the mat"]
        assert (await ann.http.get(f"/api/tasks/{task['id']}")).status_code == 200
        for id_ in (task["id"], memory["id"]):
            why = await ann.http.get(f"/api/why/{id_}")
            assert why.status_code == 200, why.text
            assert "which was deleted at" in why.text
        event = memory["provenance"][0]
        for path in (f"/api/why/{event}?session={ann.key}", f"/api/sessions/{ann.key}/timeline"):
            gone = await ann.http.get(path)
            assert gone.status_code == 410, gone.text

        answer = await ann.http.request(
            "DELETE", f"/api/sessions/{ann.key}", params={"memories": "true"}
        )
        assert answer.json()["memories_forgotten"] == 1
        assert contents(await look(ann.http)) == []


@pytest.mark.usefixtures("own_broker")
async def test_what_it_asked_for_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: a request holds the arguments of a call, and nobody could decide it any more. What
    another conversation asked for stays open."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann, other = [await world.person(key, has_socket=False) for key in (ANN, OTHER)]
        for person, text in ((ann, TEXT), (other, "else")):
            await say_from_outside(person, ask(("shell", {"command": f"echo {text}"})))
        assert streams(tmp_path), "the positive control"
        found = await open_requests(ann.http)
        assert set(found) == {ann.key, other.key}

        await deleted(ann)
        assert set(await open_requests(ann.http)) == {other.key}
        assert streams(tmp_path) == []
        gone = found[ann.key]
        verdict = {"verdict": "accept", "digest": gone["digest"]}
        late = await ann.http.patch(f"/api/approvals/{gone['id']}", json=verdict)
        assert late.status_code == 404
        await other.exchange(f"accept {gone['name']}")
        assert "Accepted" not in (await other.transcript())[-1]["text"]


@pytest.mark.usefixtures("own_broker")
async def test_what_it_alone_was_allowed_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-8: else it would hold for the next conversation of that name, where nobody allowed it."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann = await world.person(has_socket=False)
        call = ask(("shell", {"command": f"echo {TEXT}"}))
        everywhere = await granted(ann.http, "elsewhere", "")
        there = await granted(ann.http, TEXT, ann.key)
        await say_from_outside(ann, call)
        assert await open_requests(ann.http) == {}, "the positive control: it's allowed"
        url = f"http://127.0.0.1:{world.gate.port}"
        cli = Cli(tmp_path / "cli", VIGIL_URL=url, VIGIL_TOKEN=ann.token)

        told = await asyncio.to_thread(cli, "delete", ann.key, "--yes")
        assert "1 grant that held in it alone ended, too." in told.stderr
        await until_deleted(ann)
        assert streams(tmp_path) == []
        standing = (await ann.http.get("/api/grants")).json()["grants"]
        assert [one["id"] for one in standing] == [everywhere]
        ended = (await ann.http.get(f"/api/grants/{there}")).json()
        assert (ended["state"], ended["constraints"], ended["uses"]) == ("ended", [], 1)
        why = (await ann.http.get(f"/api/why/{there}")).text
        assert "its conversation was deleted" in why
        await say_from_outside(ann, call)
        assert set(await open_requests(ann.http)) == {ann.key}, "the next one has to ask"


@pytest.mark.usefixtures("own_broker")
async def test_what_an_older_version_left_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests stayed on the board, and grants held on: those made before the conversation was
    deleted end, whatever came since stays."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann = await world.person(has_socket=False)
        key = SessionKey.parse(ann.key)
        await say_from_outside(ann, ask(("shell", {"command": f"echo {TEXT}"})))
        await granted(ann.http, TEXT, ann.key)
        await world.gate.stack.stop("scheduler")
        now = world.clock.now()
        mark = Deletion(session=ann.key, asked_at=now, by="ann", done_at=now)
        await thread_mark.put(world.admin, mark)
        assert isinstance(world.clock, StoppedClock)
        world.clock.move(60)
        later = await granted(ann.http, "later", ann.key)

        await world.gate.stack.start("scheduler")
        async with asyncio.timeout(60):
            pause_s = pauses()
            while (await thread_mark.find(world.admin, key)) == mark:
                await asyncio.sleep(next(pause_s))
        assert await open_requests(ann.http) == {}
        left = (await ann.http.get("/api/grants", params={"state": "all"})).json()["grants"]
        assert [one["id"] for one in left] == [later]
        swept = await thread_mark.find(world.admin, key)
        assert swept is not None
        assert swept.deleted == {"BOARD": 2}


@pytest.mark.usefixtures("own_broker")
async def test_nothing_is_allowed_in_what_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that came at the same moment goes whole, with its uses."""
    monkeypatch.setattr(deletions, "QUIET_S", 0.2)
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await world.person(has_socket=False)
        await ann.exchange("hello")
        id_ = await granted(ann.http, TEXT, ann.key)
        key = SessionKey.parse(ann.key)
        await thread_mark.begin(world.admin, key, by="ann", now=world.clock.now())
        await until_deleted(ann)
        assert (await ann.http.get(f"/api/grants/{id_}")).status_code == 404
        await world.gate.stack.stop("scheduler")
        await ann.exchange("hello")
        answer = await ann.http.request("DELETE", f"/api/sessions/{ann.key}")
        assert answer.status_code == 202
        refused = await ann.http.post("/api/grants", json=allowed("more", ann.key))
        assert refused.status_code == 410, refused.text


def allowed(word: str, session: str) -> dict[str, Any]:
    limits = [{"kind": "argv", "argv": ["echo", word]}]
    return {
        "tool": "shell",
        "constraints": limits,
        "session_key": session,
        "holds_for_outside": True,
        "why": word,
    }


async def granted(http: httpx2.AsyncClient, word: str, session: str) -> str:
    """Allow `echo` of one word, in one conversation or in all; return the grant's id."""
    made = await http.post("/api/grants", json=allowed(word, session))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def open_requests(http: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    """Return what waits for the person, by the conversation that asked."""
    found = (await http.get("/api/approvals", params={"state": "open"})).json()["approvals"]
    return {one["session_key"]: one for one in found}


async def uploaded(http: httpx2.AsyncClient, width: int) -> str:
    """Upload a picture; return its hash."""
    made = await http.post("/api/attachments", content=png(width, 5))
    assert made.status_code == 201, made.text
    return str(made.json()["hash"])


async def status_of(http: httpx2.AsyncClient, hash_: str) -> int:
    return (await http.get(f"/api/attachments/{hash_}")).status_code
