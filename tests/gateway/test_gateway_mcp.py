"""/mcp: a memory for programs that speak the Model Context Protocol, with the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx2
import jsonschema
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from services.gateway.state.mcp_lifetime import McpRunning
from tests.support.gateway import Gate, assert_problem
from tests.support.remembering import running_memories
from vigil.memory.mcp_server import offered
from vigil.subjects import Scope

of_module = pytest.mark.asyncio(loop_scope="module")
Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def gate(shared_gate: Gate) -> Gate:
    """One for the whole module, without memory."""
    return shared_gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memories(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    """One for the whole module, with memory: each test has users of its own."""
    async with running_memories(tmp_path_factory.mktemp("memories")) as gate:
        yield gate


@contextlib.asynccontextmanager
async def talking(
    gate: Gate, user: str, mode: Mode = "auto", query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """An MCP client with a token of `user`."""
    headers = {"Authorization": f"Bearer {await gate.token(user, **options)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=10) as http:
        url = f"http://127.0.0.1:{gate.port}/mcp{query}"
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    (text,) = result.content
    assert json.loads(text.text) == found  # type: ignore[union-attr]
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (text,) = result.content
    return str(text.text)  # type: ignore[union-attr]


@of_module
@pytest.mark.parametrize("mode", MODES)
async def test_a_memory_is_saved_found_and_forgotten(memories: Gate, mode: Mode) -> None:
    """P-5: all the tools, in the newest form of the protocol and in the older one."""
    async with talking(memories, mode, mode) as ann:
        saved = await call(
            ann, "memory_save", content="Ann's bicycle is red", type="fact", thread="t1",
            occurred_at="2026-02-03T04:05:06Z",
        )  # fmt: skip
        found = await call(ann, "memory_recall", query="what colour is the bicycle")
        (hit,) = found["memories"]
        assert hit["content"] == "Ann's bicycle is red"
        assert (hit["id"], hit["source"], hit["threadId"]) == (saved["id"], "mcp", "t1")
        assert hit["parts"]["text"] > 0
        other = await call(ann, "memory_save", content="Bob repairs it", source="garage")
        assert (await call(ann, "memory_list", source="garage"))["memories"][0]["id"] == other["id"]
        listed = await call(ann, "memory_list", limit=1)
        rest = await call(ann, "memory_list", limit=1, after=listed["next_after"])
        assert {listed["memories"][0]["id"], rest["memories"][0]["id"]} == {
            saved["id"], other["id"],
        }  # fmt: skip
        detail = await call(ann, "memory_get", id=saved["id"])
        assert detail["memory"]["content"] == "Ann's bicycle is red"
        graph = await call(ann, "memory_graph", id=saved["id"])
        assert [node["id"] for node in graph["nodes"]] == [saved["id"]]
        assert await call(ann, "memory_forget", id=saved["id"]) == {"forgotten": 1}
        assert "there is no memory" in await refused(ann, "memory_get", id=saved["id"])
        stored = await memories.admin.read("MEMORIES", [Scope("vigil", mode).record("save")])
        assert {json.loads(message.data)["by"] for message in stored} == {f"user:{mode}"}


@of_module
async def test_two_people_at_once_stay_apart(memories: Gate) -> None:
    """X-4, issue 4: the tools act for the principal of each request, whatever else goes on."""
    async with talking(memories, "ann") as ann, talking(memories, "bob", "legacy") as bob:

        async def live(client: Client, name: str) -> list[str]:
            ids = []
            for number in range(15):
                saved = await call(client, "memory_save", content=f"canary {number} of {name}")
                ids.append(saved["id"])
                found = await call(client, "memory_recall", query="canary", limit=50)
                owners = {memory["content"].split()[-1] for memory in found["memories"]}
                assert owners == {name}
            return ids

        ids, _ = await asyncio.gather(live(ann, "ann"), live(bob, "bob"))
        for tool in ("memory_get", "memory_forget", "memory_graph"):
            assert "there is no memory" in await refused(bob, tool, id=ids[0])
        assert len((await call(ann, "memory_list", limit=50))["memories"]) == 15


@of_module
async def test_an_admin_may_name_a_user_and_anybody_an_agent(memories: Gate) -> None:
    """X-4: by the URL; no argument of a tool names whose memory it is."""
    async with talking(memories, "eve", query="?agentId=work") as eve:
        await call(eve, "memory_save", content="only for work")
    async with talking(memories, "root", query="?userId=eve&agentId=work", is_admin=True) as root:
        found = await call(root, "memory_list")
        assert [m["content"] for m in found["memories"]] == ["only for work"]
    async with talking(memories, "eve") as eve:
        assert (await call(eve, "memory_list"))["memories"] == []
        reason = await refused(eve, "memory_list", userId="bob")
        assert "userId" in reason


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("memory_save", {}, "content"),
    ("memory_save", {"content": ""}, "content"),
    ("memory_save", {"content": "  "}, "content"),
    ("memory_save", {"content": "a\0b"}, "content"),
    ("memory_save", {"content": "x" * 100_000}, "content"),
    ("memory_save", {"content": 7}, "content"),
    ("memory_save", {"content": "x", "importance": 2}, "importance"),
    ("memory_save", {"content": "x", "type": "thought"}, "type"),
    ("memory_save", {"content": "x", "userId": "bob"}, "userId"),
    ("memory_save", {"content": "x", "occurred_at": "today"}, "occurred_at"),
    ("memory_recall", {"query": ""}, "query"),
    ("memory_recall", {"query": "a\0"}, "q"),
    ("memory_recall", {"query": "x", "limit": 0}, "limit"),
    ("memory_recall", {"query": "x", "limit": "5"}, "limit"),
    ("memory_recall", {"query": "x", "colour": "red"}, "colour"),
    ("memory_list", {"sort": "size"}, "sort"),
    ("memory_list", {"after": "nonsense"}, "after"),
    ("memory_get", {"id": "x"}, "id"),
    ("memory_forget", {"id": "0" * 31}, "id"),
    ("memory_graph", {"depth": 9}, "depth"),
]


@of_module
async def test_bad_arguments_are_told_so_that_a_model_can_correct_them(memories: Gate) -> None:
    """X-6: an error of the tool, with the argument and the reason; nothing is saved."""
    before = len(await memories.admin.read("MEMORIES", ["memory.>"]))
    async with talking(memories, "carl") as ann:
        for tool, arguments, field in BAD_CALLS:
            reason = await refused(ann, tool, **arguments)
            assert field in reason, (tool, arguments, reason)
            assert "Traceback" not in reason
        with pytest.raises(MCPError, match="no such tool"):
            await ann.call_tool("memory_drop", {})
    assert len(await memories.admin.read("MEMORIES", ["memory.>"])) == before


@of_module
async def test_a_memory_service_that_is_away_is_an_error_of_the_tool(gate: Gate) -> None:
    """X-6: the connection stays; every tool says that it can't now."""
    async with talking(gate, "ann") as ann:
        for tool, arguments in (
            ("memory_save", {"content": "x"}), ("memory_recall", {"query": "x"}),
            ("memory_list", {}), ("memory_get", {"id": "0" * 32}),
            ("memory_forget", {"id": "0" * 32}), ("memory_graph", {}),
        ):  # fmt: skip
            assert "can't be reached" in await refused(ann, tool, **arguments)


@of_module
async def test_tools_describe_themselves(gate: Gate) -> None:
    """P-5: typed arguments and results, hints, words that a model understands."""
    async with talking(gate, "ann") as ann:
        tools = (await ann.list_tools()).tools
    assert [tool.name for tool in tools] == list(offered())
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert all("description" in one for one in tool.input_schema["properties"].values())
        assert tool.description
        assert tool.annotations is not None
        is_reading = tool.name not in ("memory_save", "memory_forget")
        assert tool.annotations.read_only_hint is is_reading
        assert tool.annotations.destructive_hint is (tool.name == "memory_forget")
        assert not {"userId", "agentId", "user", "owner"} & set(tool.input_schema["properties"])


@of_module
async def test_the_door_is_the_same_as_everywhere(gate: Gate) -> None:
    """X-4: a token, a Host, an Origin; limits of size and depth; the query is checked."""
    nobody = await gate.http()
    answer = await nobody.post("/mcp", json=PING, headers=ACCEPT)
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert_problem(await (await gate.http("pat_" + "x" * 43)).post("/mcp", json=PING), 401)
    ann = await gate.person("ann")
    evil = {"origin": "https://evil.example"}
    assert_problem(await ann.post("/mcp", json=PING, headers=ACCEPT | evil), 403)
    assert_problem(await ann.post("/mcp", json=PING, headers={"host": "evil.example"}), 421)
    assert_problem(await ann.post("/mcp?userId=bob", json=PING, headers=ACCEPT), 403, "userId")
    assert_problem(await ann.post("/mcp?agentId=a.b", json=PING, headers=ACCEPT), 422, "agentId")
    assert_problem(await ann.post("/mcp?colour=red", json=PING, headers=ACCEPT), 422, "colour")
    assert_problem(await ann.post("/mcp", content=b" " * 300_000, headers=ACCEPT), 413, "body")
    deep = b"[" * 5000 + b"]" * 5000
    assert_problem(await ann.post("/mcp", content=deep, headers=ACCEPT), 422, "body")
    for method in ("GET", "PUT", "DELETE"):
        refusal = await ann.request(method, "/mcp", headers=ACCEPT)
        assert_problem(refusal, 405)
        assert refusal.headers["allow"] == "POST"


NONSENSE = [
    b"", b"{", b"null", b"[]", b"7", b'{"jsonrpc":"2.0","id":1}', b"\xff", b"\x00",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"nothing/such"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
    b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
]  # fmt: skip


@of_module
@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28", "1999-01-01", "x"])
async def test_nonsense_gets_an_answer_and_no_fault(gate: Gate, version: str | None) -> None:
    """X-6: below 500, at once, whatever is sent; the next request is served."""
    ann = await gate.person("ann")
    headers = ACCEPT | {"content-type": "application/json"}
    if version is not None:
        headers["mcp-protocol-version"] = version
    for body in NONSENSE:
        answer = await ann.post("/mcp", content=body, headers=headers)
        assert answer.status_code < 500, (body, answer.text)
        assert "Traceback" not in answer.text
        assert (await ann.post("/mcp", json=PING, headers=ACCEPT)).status_code == 200


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@of_module
async def test_half_of_a_surrogate_pair_is_the_callers_mistake(gate: Gate) -> None:
    """X-6: refused with a reason, and not logged as a fault of ours with what was said."""
    ann = await gate.person("ann")
    body = json.dumps(
        {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "memory_recall", "_meta": ENVELOPE,
                "arguments": {"query": "x", "source": "\ud800"},
            },
        }
    )  # fmt: skip
    headers = {
        **ACCEPT, "content-type": "application/json", "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call", "mcp-name": "memory_recall",
    }  # fmt: skip
    answer = await ann.post("/mcp", content=body, headers=headers)
    assert answer.status_code == 200
    (text,) = answer.json()["result"]["content"]
    assert "These arguments can't be used" in text["text"]


async def test_it_is_started_again_if_it_ended() -> None:
    """X-6: a fault inside the SDK costs the requests of that moment, and not all later ones."""
    breaks = asyncio.Event()

    class Manager:
        @contextlib.asynccontextmanager
        async def run(self) -> AsyncIterator[None]:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._break())
                yield

        async def _break(self) -> None:
            await breaks.wait()
            raise RuntimeError("a bug of the SDK")

    running = McpRunning()
    first = await running.started(Manager)
    assert await running.started(Manager) is first
    breaks.set()
    async with asyncio.timeout(10):
        while await running.started(Manager) is first:
            await asyncio.sleep(0)
    await running.close()
