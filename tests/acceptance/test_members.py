"""Two people, and a team of two with a stranger at the door, through the real services (L-17)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from tests.support.cli import Cli
from tests.support.gateway import Gate, until
from tests.support.jobs import Jobs, shell, steps
from tests.support.remembering import contents, look, save
from tests.support.stack import running_stack
from vigil.contracts import SendMessage, decode_turn
from vigil.subjects import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVICES: Final = ("gateway", "memory", "cortex", "executor", "scheduler", "delivery")
KEY: Final = SessionKey("team", "desk", "t1")
MEMBERS: Final = ("ann", "ben")


class World(NamedTuple):
    gate: Gate
    tokens: Mapping[str, str]
    clients: Mapping[str, httpx2.AsyncClient]
    home: Path

    async def said(self, key: SessionKey) -> list[str]:
        """Return what a session decided to say."""
        found = await self.gate.admin.read(key.stream, [key.turns])
        effects = [effect for one in found for effect in decode_turn(one.data).effects]
        return [one.payload.text for one in effects if isinstance(one, SendMessage)]

    async def told(self, *people: str) -> dict[str, list[str]]:
        """Return what each was told at home."""
        return {one: await self.said(SessionKey(one, "vigil", "main")) for one in people}

    async def signals(self, user: str) -> list[dict[str, Any]]:
        answer = await self.clients[user].get("/api/signals", params={"follow": "false"})
        lines = answer.text.splitlines()
        return [json.loads(one.removeprefix("data: ")) for one in lines if one.startswith("data")]

    async def cli(self, user: str, *args: str) -> str:
        url = f"http://127.0.0.1:{self.gate.port}"
        cli = Cli(self.home / user, VIGIL_URL=url, VIGIL_TOKEN=self.tokens[user])
        return (await asyncio.to_thread(cli, *args)).stdout


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: Any) -> AsyncIterator[World]:
    home: Path = tmp_path_factory.mktemp("teams")
    sections = {
        "agents": {"desk": {"kind": "team", "members": MEMBERS}},
        "executor": {"sandbox": "off", "allow_unsafe": True},
    }
    async with running_stack(home / "vigil", services=SERVICES, **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        tokens = {one: await gate.token(one) for one in (*MEMBERS, "eve")}
        clients = {one: await gate.http(token) for one, token in tokens.items()}
        yield World(gate, tokens, clients, home)
        await gate.close()


async def test_members_talk_in_one_session_and_each_is_named(world: World) -> None:
    ann, ben, eve = (world.clients[one] for one in (*MEMBERS, "eve"))
    path = f"/api/sessions/{KEY}"
    assert (await ann.post(f"{path}/messages", json={"text": "Good morning"})).status_code == 202
    socket = await world.gate.socket(world.tokens["ben"], str(KEY))
    await socket.send(json.dumps({"type": "message", "text": "Hello", "id": "1"}))
    transcript: dict[str, Any] = {}

    async def is_answered() -> bool:
        transcript.update((await ben.get(path)).json())
        return [one["role"] for one in transcript["messages"]].count("assistant") == 2

    await until(is_answered, "both were answered")
    people = [one for one in transcript["messages"] if one["role"] == "user"]
    assert [(one["by"], one["text"]) for one in people] == [
        ("ann", "Good morning"), ("ben", "Hello"),
    ]  # fmt: skip
    assert (await ann.get(path)).json() == transcript
    found = await world.gate.admin.read(KEY.stream, [KEY.turns])
    rows = [row for one in found for row in decode_turn(one.data).rows if row.source == "person"]
    assert [row.by for row in rows] == ["ann", "ben"]
    story = (await ben.get(f"/api/why/{people[0]['id']}")).json()
    assert any(step["text"] == "ann wrote: “Good morning”" for step in story["steps"])
    with pytest.raises(InvalidStatus) as caught:
        await world.gate.socket(world.tokens["eve"], str(KEY))
    assert caught.value.response.status_code == 403
    for answer in (
        await eve.get(path),
        await eve.post(f"{path}/messages", json={"text": "hi"}),
        await eve.post("/api/tickets", json={"session": str(KEY)}),
        await eve.get("/api/signals", params={"session": str(KEY), "follow": "false"}),
        await eve.get("/api/sessions", params={"user": "team"}),
        await eve.get("/api/memories", params={"agentId": "desk"}),
        await eve.post("/api/chat", json={"message": "x", "userId": "eve", "agentId": "desk"}),
        await eve.post("/api/jobs", json={"goal": "x", "agentId": "desk"}),
    ):
        assert answer.status_code == 403, (answer.request.url, answer.text)
    listed = (await ben.get("/api/sessions")).json()["sessions"]
    assert str(KEY) in [one["session_key"] for one in listed]


async def test_one_member_asks_and_the_other_decides(world: World) -> None:
    ann, ben = Jobs(world.clients["ann"]), Jobs(world.clients["ben"])
    id_ = await ann.start(goal=steps(shell("echo done")), input="by a stranger", agentId="desk")
    assert (await ben.get(id_))["userId"] == "team"
    asked: list[dict[str, Any]] = []

    async def is_asked() -> bool:
        answer = await ben.http.get("/api/approvals")
        asked[:] = answer.json()["approvals"]
        return bool(asked)

    await until(is_asked, "it waits for a member")
    (one,) = asked
    assert one["name"] in await world.cli("ben", "approvals")
    assert one["name"] not in await world.cli("eve", "approvals")
    path = f"/api/approvals/{one['id']}"
    verdict = {"verdict": "accept"}
    assert (await world.clients["eve"].patch(path, json=verdict)).status_code == 404
    await world.cli("ben", "approvals", "accept", one["id"][:8])
    assert (await ann.ended(id_))["status"] == "succeeded"
    assert (await ann.http.get(path)).json()["decided_by"] == "ben"

    told = f"desk: A job is done: 0 of 1 steps worked. (`vigil jobs show {id_}`)"

    async def are_told() -> bool:
        # Of the job, which went on without leave, and of what ran once there was.
        found = (await world.told(*MEMBERS)).values()
        return all(
            told in texts and any("which you accepted, is done" in text for text in texts)
            for texts in found
        )

    await until(are_told, "both are told")
    assert (await world.told("eve"))["eve"] == []

    async def are_signalled() -> bool:
        kinds = {one["kind"] for one in await world.signals("ann") if one["owner"] == "team"}
        return {"approval.requested", "approval.decided", "job.started"} <= kinds

    await until(are_signalled, "what members may see")
    assert {one["owner"] for one in await world.signals("eve")} <= {"eve"}


async def test_what_is_a_members_own_stays_theirs(world: World) -> None:
    """Neither the team nor the other member has it, with the agent that they share."""
    ann, ben = world.clients["ann"], world.clients["ben"]
    await save(ann, "ann's canary is yellow")
    await save(ann, "the desk's canary is green", agentId="desk")
    found = contents(await look(ben, q="canary", agentId="desk"))
    assert found[0] == "the desk's canary is green"
    assert "yellow" not in "".join(found)
    assert contents(await look(ben, q="canary")) == []
    assert contents(await look(ann, q="canary")) == ["ann's canary is yellow"]
    before = await world.told(*MEMBERS)
    jobs = Jobs(ann)
    id_ = await jobs.start(goal=steps(("list_memory", {})))
    assert (await jobs.ended(id_))["status"] == "succeeded"

    async def is_told() -> bool:
        return len((await world.told("ann"))["ann"]) > len(before["ann"])

    await until(is_told, "ann is told")
    assert (await world.told("ben"))["ben"] == before["ben"]
    for path in ("jobs", "approvals", "grants", "tasks", "signals", "sessions", "dead"):
        answer = await ben.get(f"/api/{path}", params={"follow": "false", "state": "all"})
        if answer.status_code == 422:
            answer = await ben.get(f"/api/{path}")
        assert "ann:vigil" not in answer.text, path
        assert id_ not in answer.text, path


async def test_a_member_speaks_from_the_command_line(world: World) -> None:
    """With a team's agent it is a session of the team's; without a thread, the team's home."""
    await world.cli("ann", "send", "Hello", "--agent", "desk", "--thread", "cli")
    assert "team:desk:cli" in await world.cli("ben", "sessions")
    assert "team:desk:cli" not in await world.cli("eve", "sessions")
