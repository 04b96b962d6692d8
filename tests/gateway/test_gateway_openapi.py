"""The OpenAPI document against the gateway that it describes (SPEC P-5).

Each example is sent and accepted; what the gateway refuses by its form, the document refuses, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest

from services.gateway.documents import examples_http
from services.gateway.http.problem import MEDIA_TYPE
from tests.support.gateway import Gate, running_gateway
from vigil.settings.live import followed

ROOT = Path(__file__).parents[2]
ID = "0123456789abcdef0123456789abcdef"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def gate(shared_gate: Gate) -> Gate:
    """Nearly all that is sent here is refused."""
    return shared_gate


async def document_of(gate: Gate) -> dict[str, Any]:
    found: dict[str, Any] = (await (await gate.http()).get("/openapi.json")).json()
    return found


def operations(document: dict[str, Any]) -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def bodies_shown(operation: dict[str, Any]) -> list[tuple[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {})
    return [
        (media_type, shown["value"])
        for media_type, one in content.items()
        for shown in one.get("examples", {}).values()
    ]


def schemas_in(value: Any) -> list[dict[str, Any]]:
    """Return all that stands in a document as an object, at any depth."""
    if isinstance(value, list):
        return [found for one in value for found in schemas_in(one)]
    if not isinstance(value, dict):
        return []
    return [value, *(found for one in value.values() for found in schemas_in(one))]


def is_valid(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    whole = {**schema, "components": document["components"]}
    return bool(jsonschema.Draft202012Validator(whole).is_valid(value))


def body_schema(operation: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = next(iter(operation["requestBody"]["content"].values()))["schema"]
    return schema


def filled(path: str) -> str:
    there = {"key": examples_http.SESSION, "id": ID, "name": "ci", "agentId": "vigil"}
    for name, value in there.items():
        path = path.replace(f"{{{name}}}", value)
    return path


async def test_everything_has_a_place_and_every_body_an_example(gate: Gate) -> None:
    document = await document_of(gate)
    assert document["servers"]
    tags = {tag["name"] for tag in document["tags"]}
    for name, (_, _, operation) in operations(document).items():
        assert len(set(operation["tags"])) == 1, name
        assert set(operation["tags"]) <= tags, name
        if "requestBody" in operation and name not in (
            "post_hook",
            "post_channel",
            "upload_attachment",
        ):
            assert bodies_shown(operation), name
    jsonschema.Draft202012Validator.check_schema({"$defs": document["components"]["schemas"]})


async def test_each_example_fits_its_schema_and_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs something that isn't there, or a service, is refused for that and nothing else."""
    # Some write into vigil.toml: a gateway that begins anew ends connections that are kept open.
    monkeypatch.setattr(followed, "POLL_S", 3600.0)
    async with running_gateway(tmp_path, chat_wait_s=0.1) as gate:
        document = await document_of(gate)
        ann = await gate.person("ann", is_admin=True)
        gate.stack.settings.skills.mkdir(parents=True, exist_ok=True)
        for file in (ROOT / "prompts" / "en" / "skills").glob("*.md"):
            (gate.stack.settings.skills / file.name).write_text(file.read_text())
        statuses: dict[str, set[int]] = {}
        for name, (method, path, operation) in operations(document).items():
            for media_type, value in bodies_shown(operation):
                headers = {"content-type": media_type}
                if media_type == "*/*":
                    headers = {"content-type": "text/plain"} | examples_http.EVENT_HEADERS
                else:
                    assert is_valid(document, body_schema(operation), value), (name, value)
                content = value if isinstance(value, str) else json.dumps(value)
                answer = await ann.request(method, filled(path), content=content, headers=headers)
                # 404: there is no approval and no job with that id; 503: no memory service here.
                expected = (200, 201, 202, 404, 409, 503, 504)
                assert answer.status_code in expected, (name, value, answer.text)
                statuses.setdefault(name, set()).add(answer.status_code)
    assert statuses["post_event"] == statuses["post_message"] == statuses["chat"] == {202}
    assert statuses["start_job"] == {202}
    assert statuses["give_ticket"] == {201}
    assert statuses["post_mcp"] == {200}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", {"message": " ", "userId": "ann"}),
        ("chat", {"message": "x", "userId": "a.b"}),
        ("chat", {"message": "x", "userId": "ann", "threadId": "_mine"}),
        ("chat", {"message": "x", "userId": "ann", "agentId": ""}),
        ("post_message", {"text": ""}),
        ("post_message", {"text": "x", "idempotency_key": ""}),
        ("post_message", {"text": "x", "idempotency_key": "k" * 257}),
        ("give_ticket", {"session": "ann:vigil"}),
        ("give_ticket", {"session": "ann:vigil:_t"}),
        ("post_event", {**examples_http.BODIES["CloudEvent"]["text"], "subject": "ann"}),
        ("post_event", {**examples_http.BODIES["CloudEvent"]["text"], "id": ""}),
        ("post_event", {**examples_http.BODIES["CloudEvent"]["text"], "id": "x" * 257}),
        ("post_event", {**examples_http.BODIES["CloudEvent"]["text"], "type": "x" * 257}),
        ("post_event", {**examples_http.BODIES["CloudEvent"]["text"], "source": "x" * 1025}),
        ("save_memory", {"content": "x", "agentId": "a b"}),
        ("undo_memories", {"source": "x", "userId": "*"}),
        ("associate_memories", {"from_id": "x", "to_id": ID}),
        ("maintain_memories", {"agentId": "a/b"}),
        ("start_job", {"goal": "x", "userId": "a:b"}),
        ("decide_approval", {"verdict": "perhaps"}),
        ("change_job", {"status": "running"}),
    ],
)
async def test_what_is_refused_breaks_the_schema(gate: Gate, name: str, body: Any) -> None:
    document = await document_of(gate)
    method, path, operation = operations(document)[name]
    admin = await gate.person("ann", is_admin=True)
    media_type = next(iter(operation["requestBody"]["content"]))
    answer = await admin.request(
        method, filled(path), content=json.dumps(body), headers={"content-type": media_type}
    )
    assert answer.status_code == 422, answer.text
    assert not is_valid(document, body_schema(operation), body)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("list_sessions", "user", "a.b"), ("get_signals", "user", "a b"),
        ("get_signals", "agent", "*"), ("get_signals", "session", "ann"),
        ("get_signals", "kind", "message"), ("get_signals", "after", "-1"),
        ("list_approvals", "user", ">"), ("list_jobs", "agentId", "a.b"),
        ("get_memory_stats", "agentId", ""), ("get_why", "session", "ann:vigil"),
        ("get_memory", "id", "graph7"), ("get_approval", "id", "1"), ("get_job", "id", "g" * 32),
        ("get_transcript", "key", "ann:vigil"), ("stop", "key", "ann:vi.gil:t1"),
        ("post_message", "key", "ann:vigil:_t"), ("get_dead", "id", "x" * 257),
        ("cancel_timer", "timer_id", "x" * 600), ("find_memories", "type", "rumour"),
        ("find_memories", "since", "2026"), ("find_memories", "since", "1e9"),
        ("find_memories", "until", "2026-11-22"), ("find_memories", "as_of", "-1.5"),
    ],
)  # fmt: skip
async def test_a_parameter_that_is_refused_breaks_its_schema(
    gate: Gate, name: str, parameter: str, value: str
) -> None:
    document = await document_of(gate)
    method, path, operation = operations(document)[name]
    (shown,) = [p for p in operation["parameters"] if p["name"] == parameter]
    if f"{{{parameter}}}" in path:
        path = path.replace(f"{{{parameter}}}", value)
    else:
        path = f"{path}?{parameter}={value}"
    ann = await gate.person("ann", is_admin=True)
    answer = await ann.request(method, filled(path), content='{"text": "x"}')
    assert answer.status_code == 422, answer.text
    fits = is_valid(document, shown["schema"], [value] if parameter == "type" else value)
    is_instant = "date-time" in json.dumps(shown["schema"])  # a format, which validators note only
    assert is_instant or not fits


async def test_a_body_is_required_where_it_is_said_to_be(gate: Gate) -> None:
    document = await document_of(gate)
    ann = await gate.person("ann", is_admin=True)
    for name, (method, path, operation) in operations(document).items():
        if (
            name in ("post_hook", "post_channel", "post_mcp", "post_a2a")
            or "requestBody" not in operation
        ):
            continue
        headers = examples_http.EVENT_HEADERS if name == "post_event" else {}
        answer = await ann.request(method, filled(path), headers=headers)
        # OpenAI's interface says so by 400.
        is_refused = answer.status_code == (400 if name in ("complete", "respond") else 422)
        assert is_refused is operation["requestBody"]["required"], (name, answer.text)


async def test_a_path_answers_with_its_own_methods(gate: Gate) -> None:
    """RFC 9110: not those of another path that has a parameter there."""
    document = await document_of(gate)
    ann = await gate.person("ann", is_admin=True)
    for path, methods in document["paths"].items():
        taken = {method.upper() for method in methods}
        for method in METHODS:
            if method in taken:
                continue
            answer: httpx2.Response = await ann.request(method, filled(path))
            assert answer.status_code == 405, (method, path, answer.text)
            assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == taken, (method, path)


async def test_malformed_json_is_named_as_such(gate: Gate) -> None:
    ann = await gate.person("ann")
    answer = await ann.post("/api/chat", content="{")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.json()["detail"].startswith("body ")
    assert "jSON" not in answer.text


async def test_both_forms_of_events_and_hooks_are_described(gate: Gate) -> None:
    found = operations(await document_of(gate))
    event, hook = found["post_event"][2], found["post_hook"][2]
    assert set(event["requestBody"]["content"]) == {"application/cloudevents+json", "*/*"}
    headers = {p["name"] for p in event["parameters"] if p["in"] == "header"}
    assert {"ce-id", "ce-source", "ce-type", "ce-specversion", "ce-subject"} <= headers
    names = {p["name"] for p in hook["parameters"]}
    assert {"name", "webhook-id", "webhook-timestamp", "webhook-signature"} <= names
    assert {"x-github-delivery", "x-hub-signature-256", "x-github-event"} <= names
    assert hook["security"] == []


async def test_each_answer_is_of_a_documented_kind(gate: Gate) -> None:
    """Issue 32: status and media type of whatever is read, and of what MCP refuses."""
    document = await document_of(gate)
    admin = await gate.person("ann", is_admin=True)
    for name, (method, path, operation) in operations(document).items():
        if method != "GET" or "{" in path or "text/event-stream" in str(operation["responses"]):
            continue
        answer = await admin.request(method, path)
        documented = operation["responses"].get(str(answer.status_code))
        assert documented is not None or answer.status_code == 426, (name, answer.status_code)
        kind = answer.headers.get("content-type", "").partition(";")[0]
        assert kind in (documented or {}).get("content", {kind: None}), (name, kind)
    accept = {"accept": "application/json, text/event-stream"}
    plain, html = {"content-type": "text/plain"}, {"accept": "text/html"}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    _, _, operation = operations(document)["post_mcp"]
    for body, headers, status in (
        ({"jsonrpc": "2.0", "id": 1}, accept, 400), (notice, accept, 202), (notice, html, 406),
        (notice, accept | plain, 400),
    ):  # fmt: skip
        sent = {"content-type": "application/json"} | headers
        answer = await admin.request("POST", "/mcp", content=json.dumps(body), headers=sent)
        assert answer.status_code == status, answer.text
        assert str(status) in operation["responses"]
        assert "pydantic" not in answer.text
        assert "validation" not in answer.text.lower()


async def test_generators_of_clients_find_what_they_need(gate: Gate) -> None:
    """openapi-python-client left out operations whose bodies have an array of it doesn't know
    what, a constant that is no text, or the media type `*/*`; it made broken code of `const`."""
    document = await document_of(gate)
    for schema in schemas_in(document["components"]["schemas"]):
        kind = schema.get("type")
        if kind == "array" or (isinstance(kind, list) and "array" in kind):
            assert schema.keys() & {"items", "prefixItems"}, schema
        enum = schema.get("enum")
        assert not (isinstance(enum, list) and any(isinstance(one, bool) for one in enum)), schema
    upload = document["paths"]["/api/attachments"]["post"]["requestBody"]
    assert list(upload["content"]) == ["application/octet-stream"]
