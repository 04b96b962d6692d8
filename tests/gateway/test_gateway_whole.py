"""The service as a whole: health, the OpenAPI document, errors, a broker that goes and comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import websockets

from services.gateway import patience
from services.gateway.sessions import history
from tests.chaos.processes import launched
from tests.support import warm
from tests.support.gateway import WAIT_S, Gate, assert_problem, frame_of, running_gateway, until
from vigil.broker.ports import free_port
from vigil.crash import EXIT_CODE
from vigil.observe import warmth
from vigil.observe.health import Health

ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"


async def _answer_health(
    gate: Gate, service: str, *, is_ready: bool = True, warnings: tuple[str, ...] = ()
) -> None:
    """Listen on rpc.health as a replica of `service` does."""
    health = Health(
        service=service, instance="i", pid=1, version="0", ready=is_ready, facts={"model": "m"},
        warnings=warnings,
    )  # fmt: skip

    async def answer(msg: Any) -> None:
        await gate.admin.send(msg.reply, msgspec.json.encode(health))

    await gate.admin.listen("rpc.health", answer)


async def test_ready_means_that_a_message_would_be_answered(gate: Gate) -> None:
    """SPEC X-7: alive is not ready; one ready replica of each service is needed."""
    anyone = await gate.http()
    assert (await anyone.get("/healthz")).json() == {"status": "alive"}
    first = await anyone.get("/readyz")
    assert first.status_code == 503
    assert first.json() == {
        "ready": False,
        "checks": {
            "bus": True,
            "storage": True,
            "cortex": False,
            "scheduler": False,
            "delivery": False,
            "disk": True,
        },
        "warnings": [warmth.COLD],
        "warmth": "cold",
        "bulletins_owed": 0,
    }
    for service in ("cortex", "scheduler", "delivery"):
        await _answer_health(gate, service)
    await _answer_health(gate, "cortex", is_ready=False)
    await _answer_health(gate, "executor", warnings=("10 bytes free on the disk",))

    async def is_ready() -> bool:
        return (await anyone.get("/readyz")).status_code == 200

    await until(is_ready, "ready, within the second that an answer is kept")
    warnings = (await anyone.get("/readyz")).json()["warnings"]
    assert warnings == ["10 bytes free on the disk", warmth.COLD]
    status = (await (await gate.person("ann")).get("/api/status")).json()
    assert [one["service"] for one in status["services"]] == [
        "cortex", "cortex", "delivery", "executor", "gateway", "scheduler",
    ]  # fmt: skip
    assert status["model"] == "m"
    gateway = status["services"][4]
    assert gateway["facts"]["port"] == gate.port
    assert gateway["pid"] == os.getpid()


async def test_the_openapi_document_is_whole(gate: Gate) -> None:
    """SPEC P-5: every route is in it, every reference resolves, every operation has answers."""
    answer = await (await gate.http()).get("/openapi.json")
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if ref := node.get("$ref"):
                assert ref.removeprefix("#/components/schemas/") in schemas, ref
            for value in node.values():
                check(value)
        elif isinstance(node, list):
            for value in node:
                check(value)

    check(document)
    ids = []
    for path, operations in document["paths"].items():
        for operation in operations.values():
            ids.append(operation["operationId"])
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
            assert operation["responses"]
            assert "HTTPValidationError" not in json.dumps(operation)
    assert len(ids) == len(set(ids)) > 100
    assert schemas["PostMessage"]["additionalProperties"] is False
    assert schemas["ChatRequest"]["required"] == ["message", "userId"]
    assert document["paths"]["/healthz"]["get"]["security"] == []


async def test_answers_have_the_shape_that_the_document_says(gate: Gate) -> None:
    """SPEC P-5: required fields are there, and no others than the documented ones."""
    ann = await gate.person("ann")
    schemas = (await ann.get("/openapi.json")).json()["components"]["schemas"]
    answers = {
        "Accepted": await ann.post(MESSAGES, json={"text": "hi"}),
        "Transcript": await ann.get(f"/api/sessions/{ANN}"),
        "Timeline": await ann.get(f"/api/sessions/{ANN}/timeline"),
        "TimerList": await ann.get(f"/api/sessions/{ANN}/timers"),
        "SessionList": await ann.get("/api/sessions"),
        "Ticket": await ann.post("/api/tickets", json={"session": ANN}),
        "Me": await ann.get("/api/me"),
        "Status": await ann.get("/api/status"),
        "ProblemBody": await ann.get("/api/sessions/x"),
    }
    for name, answer in answers.items():
        schema, fields = schemas[name], set(answer.json())
        assert set(schema["required"]) <= fields <= set(schema["properties"]), name


async def test_unknown_paths_and_methods(gate: Gate) -> None:
    """SPEC X-6: problem+json, with the methods that a path takes."""
    ann = await gate.person("ann")
    for path in ("/", "/api", "/api/", "/api/sessions/", "/docs", "/redoc", "/api/me/", "/../x"):
        assert_problem(await ann.get(path), 404)
    for method, path, allowed in [
        ("GET", MESSAGES, {"POST"}),
        ("POST", "/api/pause", {"PUT", "DELETE"}),
        ("PUT", f"/api/sessions/{ANN}", {"GET", "PATCH", "DELETE"}),
        ("OPTIONS", "/api/chat", {"POST"}),
        ("DELETE", "/openapi.json", {"GET", "HEAD"}),
    ]:
        answer = await ann.request(method, path)
        assert_problem(answer, 405)
        assert set(answer.headers["allow"].split(", ")) == allowed
    upgrade = await ann.get(f"/api/ws?session={ANN}")
    assert_problem(upgrade, 426)
    assert upgrade.headers["upgrade"] == "websocket"


async def test_a_fault_of_ours_says_nothing_about_the_inside(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC X-6; RELIABILITY S20: 500, problem+json, no trace; the next request works."""

    async def broken(*_: Any) -> Any:
        raise KeyError("secret detail of /home/somebody")

    monkeypatch.setattr(history, "timers", broken)
    ann = await gate.person("ann")
    answer = await ann.get(f"/api/sessions/{ANN}/timers")
    assert_problem(answer, 500)
    assert "secret" not in answer.text
    assert (await ann.get("/api/me")).status_code == 200


async def test_nothing_that_a_client_sends_is_a_fault_of_ours(gate: Gate) -> None:
    """RELIABILITY S20: hundreds of random requests: no 5xx but 503 of /readyz, no leak."""
    dice = random.Random(20)
    ann = await gate.http(await gate.token("ann"))
    parts = ["api", "sessions", ANN, "messages", "timers", "timeline", "chat", "ws", "me", "..",
             "%00", "%ff", "a%2fb", "x" * 300, "", "🙂", "tickets", "*", "pause",
             "readyz"]  # fmt: skip
    bodies = [b"", b"{}", b"[]", b"\xff", b'{"text":"a"}', b'{"session":5}', b"[" * 999, b"null",
              b'{"message":"a","userId":"ann","threadId":"\xc3\xa4"}',
              b'{"session":"a:b:c"}']  # fmt: skip
    queries = ["", "?", "?limit=-1", "?after=%00", "?limit=x&after=", "?user=%F0", "?cursor=1&&="]
    for _ in range(500):
        path = f"http://127.0.0.1:{gate.port}/" + "/".join(
            dice.choice(parts) for _ in range(dice.randint(0, 5))
        )
        method = dice.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"])
        answer = await ann.request(method, path + dice.choice(queries), content=dice.choice(bodies))
        assert answer.status_code < 500 or path.endswith("readyz"), (method, path, answer.text)
        assert "Traceback" not in answer.text


@pytest.mark.usefixtures("own_broker")
async def test_without_a_broker_503_and_with_it_back_all_works(gate: Gate) -> None:
    """SPEC X-5: nothing is accepted that isn't stored; sockets go on by themselves."""
    token = await gate.token("ann")
    ann = await gate.http(token)
    socket = await gate.socket(token, ANN)
    assert (await ann.post(MESSAGES, json={"text": "before"})).status_code == 202
    gate.stack.broker.kill()
    refused = await ann.post(MESSAGES, json={"text": "during", "idempotency_key": "k"})
    assert_problem(refused, 503)
    assert "retry-after" in refused.headers
    assert (await ann.get("/healthz")).status_code == 200
    assert (await ann.get("/readyz")).json()["checks"]["bus"] is False
    assert (await ann.get("/api/me")).status_code == 200
    gate.stack.broker.watch()

    async def is_stored() -> bool:
        answer = await ann.post(MESSAGES, json={"text": "during", "idempotency_key": "k"})
        return answer.status_code == 202

    await until(is_stored, "the same message is accepted once the broker is back")
    gate.admin = await gate.stack.bus("admin")
    texts = [json.loads(message.data)["payload"]["text"] for message in await gate.stored(ANN)]
    assert texts == ["before", "during"]
    await gate.say(ANN, "hello again", effect_id="e1")
    assert (await frame_of(socket, "message"))["text"] == "hello again"


@pytest.mark.usefixtures("own_broker")
async def test_a_short_absence_of_the_broker_is_bridged(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC X-5: a publish with an unknown outcome is repeated with the same id: stored once."""
    monkeypatch.setattr(patience, "PATIENCE_S", WAIT_S)  # a busy machine is slow to begin a broker
    ann = await gate.person("ann")
    gate.stack.broker.watch()
    gate.stack.broker.kill()
    answer = await ann.post(MESSAGES, json={"text": "bridged"})
    assert answer.status_code == 202, answer.text
    gate.admin = await gate.stack.bus("admin")
    (stored,) = await gate.stored(ANN)
    assert stored.headers["Nats-Msg-Id"] == answer.json()["event_id"]


async def test_stopping_says_goodbye_and_keeps_cursors(tmp_path: Path) -> None:
    """SPEC S-10, X-5: SIGTERM closes sockets (1012) and writes what was acknowledged."""
    async with running_gateway(tmp_path) as gate:
        token = await gate.token("ann")
        socket = await gate.socket(token, ANN)
        ack = await gate.say(ANN, "x", effect_id="e1")
        await frame_of(socket)
        await socket.send(json.dumps({"type": "ack", "cursor": ack.seq}))
        await socket.send("?")
        await frame_of(socket)
        await gate.stack.stop("gateway")
        with pytest.raises(websockets.exceptions.ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        (cursor,) = await gate.admin.read("KV_CURSORS", ["$KV.CURSORS.>"])
        assert int(cursor.data) == ack.seq
        await gate.stack.start("gateway")
        await (await gate.http(token)).get("/api/me")


# ---------------------------------------------------------------- a process of its own


class Process:
    """``python -m services.gateway``, to be killed at a crash point."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._port = free_port()
        self._process: asyncio.subprocess.Process | warm.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self, crash_at: str = "") -> None:
        settings = self._gate.stack.settings
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("VIGIL_")
        } | {
            "VIGIL_HOME": str(settings.home),
            "NATS_URL": self._gate.stack.broker.url,
            "VIGIL_PORT": str(self._port),
            "VIGIL_CRASH_AT": crash_at,
        }
        self._process = await launched("services.gateway", environment)

        async def is_up() -> bool:
            async with httpx2.AsyncClient() as client:
                try:
                    return (await client.get(f"{self.url}/healthz")).status_code == 200
                except httpx2.TransportError:
                    return False

        await until(is_up, "the gateway answers", within_s=30)

    async def ended(self) -> int:
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), 10)

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self.ended()


@pytest.mark.parametrize(
    "point", ["gateway.message.before_publish", "gateway.message.after_publish"]
)
async def test_killed_around_the_publish_a_repeat_is_stored_once(gate: Gate, point: str) -> None:
    """SPEC X-5: the client repeats with its key; the message is on the log exactly once."""
    token = await gate.token("ann")
    process = Process(gate)
    keyed = {"text": "hi", "idempotency_key": "k"}
    headers = {"Authorization": f"Bearer {token}"}
    try:
        await process.start(f"{point}:1")
        async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
            with pytest.raises(httpx2.TransportError):
                await client.post(MESSAGES, json=keyed)
        assert await process.ended() == EXIT_CODE
        assert len(await gate.stored(ANN)) == (1 if point.endswith("after_publish") else 0)
        await process.start()
        async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
            assert (await client.post(MESSAGES, json=keyed)).status_code == 202
        assert len(await gate.stored(ANN)) == 1
    finally:
        await process.stop()


async def _read_until_cut(url: str, headers: dict[str, str]) -> None:
    with contextlib.suppress(websockets.exceptions.ConnectionClosed, websockets.InvalidMessage):
        async with websockets.connect(url, additional_headers=headers, proxy=None) as socket:
            async for _ in socket:
                pass


async def test_killed_after_sending_the_message_comes_again(gate: Gate) -> None:
    """SPEC S-10, X-5: what wasn't acknowledged is sent again; what was isn't."""
    token = await gate.token("ann")
    seqs = [(await gate.say(ANN, str(n), effect_id=f"e{n}")).seq for n in range(3)]
    first = await gate.socket(token, ANN)
    await frame_of(first)
    await first.send(json.dumps({"type": "ack", "cursor": seqs[0]}))
    await first.close()

    async def is_written() -> bool:
        return len(await gate.admin.read("KV_CURSORS", ["$KV.CURSORS.>"])) == 1

    await until(is_written, "the cursor is stored")
    process = Process(gate)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{process.url}/api/ws?session={ANN}".replace("http", "ws")
    try:
        await process.start("gateway.cursor.after_send:1")
        await _read_until_cut(url, headers)
        assert await process.ended() == EXIT_CODE
        await process.start()
        async with websockets.connect(url, additional_headers=headers, proxy=None) as socket:
            assert [(await frame_of(socket))["text"] for _ in range(2)] == ["1", "2"]
    finally:
        await process.stop()
