"""Sessions of the agent's own over HTTP, and the tools there are (SPEC C-1, X-1, X-4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.gateway import Gate, assert_problem
from vigil.bus.kv import KeyValue
from vigil.contracts import (
    Cause,
    Control,
    ControlPayload,
    HeldTool,
    Row,
    Shelf,
    Start,
    State,
    TextBlock,
    Tool,
    ToolUseBlock,
    Turn,
    decode_event,
    encode,
)
from vigil.subjects import SessionKey

ANN = SessionKey.parse("ann:vigil:t1")
CALL = "c" * 32
WORKER = ANN.of_kind("worker", CALL)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def start(gate: Gate, key: SessionKey, prompt: str = "count the files") -> None:
    """Start a session as the executor does."""
    payload = ControlPayload(op="start", start=Start(prompt=prompt, parent=str(ANN), call_id=CALL))
    event = Control(id=f"start-{key.thread}", session_key=str(key), created_at=AT, payload=payload)
    await gate.admin.publish(key.in_event("control"), encode(event), expect=0)


async def think(gate: Gate, key: SessionKey, number: int, *texts: str) -> None:
    """Commit a turn with what the model said in it."""
    blocks = [TextBlock(text=text) for text in texts]
    call = ToolUseBlock(id=f"u{number}", name="shell", input={"command": "ls"})
    turn = Turn(
        id=f"turn-{key.thread}-{number}", session_key=str(key), ordinal=number, outcome="continued",
        event=Cause(id=f"start-{key.thread}", seq=1, type="control"), state=State(turns=number),
        created_at=AT, rows=(Row(role="assistant", blocks=(*blocks, call), at=AT, source="agent"),),
    )  # fmt: skip
    await gate.admin.publish(key.turn, encode(turn))


def path(key: SessionKey, tail: str = "") -> str:
    return f"/api/sessions/{key}{tail}"


async def test_a_worker_is_read_by_its_own_person(gate: Gate) -> None:
    """C-1, X-4: its task and its thoughts, every record, and nobody else's."""
    await start(gate, WORKER)
    await think(gate, WORKER, 1, "Let me look.")
    await think(gate, WORKER, 2)
    await gate.admin.publish(WORKER.turn, b"{")
    await think(gate, WORKER, 3, "There are", "two.")
    ann, bob = await gate.person("ann"), await gate.person("bob")
    shown = (await ann.get(path(WORKER))).json()
    assert [(m["seq"], m["role"], m["text"]) for m in shown["messages"]] == [
        (1, "user", "count the files"), (2, "assistant", "Let me look."),
        (5, "assistant", "There are\n\ntwo."),
    ]  # fmt: skip
    assert shown["messages"][1]["caused_by"] == f"start-{WORKER.thread}"
    first = (await ann.get(path(WORKER), params={"after": 0, "limit": 2})).json()
    assert ([m["seq"] for m in first["messages"]], first["next_after"]) == ([1, 2], 2)
    newest = (await ann.get(path(WORKER), params={"limit": 1})).json()
    assert [m["seq"] for m in newest["messages"]] == [5]
    records = (await ann.get(path(WORKER, "/timeline"))).json()["records"]
    assert [one["kind"] for one in records] == ["in.control"] + ["turn"] * 4
    assert (await ann.get(path(WORKER, "/timers"))).json()["timers"] == []
    for tail in ("", "/timeline", "/timers"):
        assert_problem(await bob.get(path(WORKER, tail)), 404)


async def test_nobody_says_anything_in_it(gate: Gate) -> None:
    """S-2, X-4: whatever way in is tried."""
    await start(gate, WORKER)
    ann = await gate.person("ann")
    assert_problem(await ann.post(path(WORKER, "/messages"), json={"text": "hi"}), 422, "threadId")
    assert_problem(await ann.delete(path(WORKER, "/timers/tea")), 422, "threadId")
    assert_problem(await ann.post("/api/tickets", json={"session": str(WORKER)}), 422, "threadId")
    chat = {"message": "hi", "userId": "ann", "threadId": WORKER.thread}
    assert_problem(await ann.post("/api/chat", json=chat), 422, "threadId")
    event = {
        "specversion": "1.0", "id": "1", "source": "/x", "type": "x", "subject": str(WORKER),
    }  # fmt: skip
    answer = await ann.post(
        "/api/events", json=event, headers={"content-type": "application/cloudevents+json"}
    )
    assert_problem(answer, 422)
    assert len(await gate.stored(str(WORKER))) == 1


async def test_lists_show_them_only_if_asked(gate: Gate) -> None:
    """C-1: by kind, page by page; the list of conversations is as it was."""
    ann = await gate.person("ann")
    await ann.post(path(ANN, "/messages"), json={"text": "hi"})
    workers = [ANN.of_kind("worker", digit * 32) for digit in "abc"]
    for key in (*workers, ANN.of_kind("branch", CALL), SessionKey("bob", "vigil", "_worker-1")):
        await start(gate, key)
    await think(gate, workers[0], 1, "hm")
    assert await listed(ann) == [str(ANN)]
    assert await listed(ann, kind="channel") == [str(ANN)]
    assert await listed(ann, kind="worker") == [str(key) for key in workers]
    assert await listed(ann, kind="branch") == [f"ann:vigil:_branch-{CALL}"]
    assert await listed(ann, kind="planner") == []
    page = (await ann.get("/api/sessions", params={"kind": "worker", "limit": 2})).json()
    assert page["sessions"][0] == {
        "session_key": str(workers[0]), "messages": 0, "last_at": "2026-03-01T12:00:00Z",
        "kind": "worker",
    }  # fmt: skip
    assert page["sessions"][1]["last_at"] is None
    assert await listed(ann, kind="worker", after=page["next_after"]) == [str(workers[2])]
    admin = await gate.person("root", is_admin=True)
    assert "bob:vigil:_worker-1" in await listed(admin, kind="worker")
    assert await listed(admin, kind="worker", user="bob") == ["bob:vigil:_worker-1"]
    assert_problem(await ann.get("/api/sessions?kind=dream"), 422, "kind")


async def listed(person: Any, **query: str) -> list[str]:
    answer = await person.get("/api/sessions", params=query)
    assert answer.status_code == 200, answer.text
    return [one["session_key"] for one in answer.json()["sessions"]]


async def test_stopping_a_worker_cancels_it(gate: Gate) -> None:
    """C-5: the whole of it, not only the turn that runs; what never was isn't begun by it."""
    await start(gate, WORKER)
    ann, bob = await gate.person("ann"), await gate.person("bob")
    assert_problem(await bob.post(path(WORKER, "/stop")), 404)
    answer = await ann.post(path(WORKER, "/stop"))
    assert answer.status_code == 202
    stored = await gate.stored(str(WORKER))
    event = decode_event(stored[-1].data)
    assert isinstance(event, Control)
    assert (event.id, event.payload.op) == (answer.json()["event_id"], "cancel")
    other = ANN.of_kind("worker", "f" * 32)
    assert_problem(await ann.post(path(other, "/stop")), 404)
    assert await gate.stored(str(other)) == []


# ---------------------------------------------------------------- tools


async def test_tools_by_source(gate: Gate) -> None:
    """X-1: with their risk, what is held back, and why there is less than there could be."""
    bucket = KeyValue(gate.admin, "TOOLS")
    ann = await gate.person("ann")
    assert (await ann.get("/api/tools")).json() == {"sources": []}
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    shell = Tool(name="shell", description="Run it", input_schema=schema, risk="external")
    builtin = Shelf(source="builtin", at=AT, tools=(shell,), facts={"sandbox": "bubblewrap"})
    held = HeldTool(name="git__push", digest="b" * 64, pinned="a" * 64)
    git = Shelf(source="git", at=AT, held=(held,), problem="1 tool changed")
    for shelf in (git, builtin, Shelf(source="gone", at=AT)):
        await bucket.put(shelf.source, encode(shelf))
    await bucket.put("broken", b"{")
    await bucket.delete("gone")
    first, second = (await ann.get("/api/tools")).json()["sources"]
    assert (first["source"], first["facts"]) == ("builtin", {"sandbox": "bubblewrap"})
    (tool,) = first["tools"]
    assert (tool["name"], tool["risk"], tool["input_schema"]) == ("shell", "external", schema)
    assert (second["source"], second["problem"]) == ("git", "1 tool changed")
    assert second["held"] == [{"name": "git__push", "digest": "b" * 64, "pinned": "a" * 64}]
    assert_problem(await (await gate.http()).get("/api/tools"), 401)
