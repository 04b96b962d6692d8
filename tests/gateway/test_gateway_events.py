"""POST /api/events: what other systems tell, as CloudEvents (SPEC P-5, X-3; RELIABILITY S5, S6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from tests.gateway.test_gateway_hooks import secret_of
from tests.support.gateway import Gate, assert_problem, running_gateway
from tests.support.stack import running_stack
from vigil.bus.bus import Message
from vigil.contracts import External, Queued, State, decode_event

ANN = "ann:vigil:t1"
PATH = "/api/events"
JSON = {"content-type": "application/cloudevents+json"}


def event(**changes: Any) -> dict[str, Any]:
    """Return an event; an attribute that is None is left out."""
    full = {
        "specversion": "1.0", "id": "42", "source": "https://ci.example/7",
        "type": "build.failed", "subject": ANN, "time": "2026-11-20T09:00:00+02:00",
        "data": {"status": "red"},
    } | changes  # fmt: skip
    return {name: value for name, value in full.items() if value is not None}


async def post(client: httpx2.AsyncClient, body: Any, **headers: str) -> httpx2.Response:
    """Send an event in structured mode; bytes go as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post(PATH, content=content, headers=JSON | headers)


async def externals(gate: Gate, session: str = ANN) -> list[tuple[Message, External]]:
    """Return what is stored for the session, which must be events from outside only."""
    found = []
    for message in await gate.stored(session):
        decoded = decode_event(message.data)
        assert isinstance(decoded, External)
        found.append((message, decoded))
    return found


async def test_a_structured_event_is_stored_untrusted(gate: Gate) -> None:
    """SPEC P-5, X-3: field by field, with who let it in; the data as it came."""
    ann = await gate.person("ann")
    body = json.dumps(event()).replace('{"status": "red"}', '{"status":  "red", "n": 1.50}')
    answer = await post(ann, body.encode())
    assert answer.status_code == 202, answer.text
    ((message, stored),) = await externals(gate)
    assert message.subject == "session.vigil.ann.t1.in.external"
    assert answer.json() == {"event_id": stored.id, "seq": message.seq}
    assert stored.session_key == ANN
    payload = stored.payload
    assert payload.source == "api:ann"
    assert (payload.kind, payload.origin, payload.origin_id) == (
        "build.failed", "https://ci.example/7", "42",
    )  # fmt: skip
    assert payload.content == '{"status":  "red", "n": 1.50}'
    assert str(payload.occurred_at) == "2026-11-20 07:00:00+00:00"
    assert payload.is_trusted is False


async def test_a_binary_event_is_the_same_event(gate: Gate) -> None:
    """SPEC P-5: attributes as headers, percent-encoded; the body is the data."""
    ann = await gate.person("ann")
    headers = {
        "ce-specversion": "1.0", "ce-id": "42", "ce-source": "https://ci.example/7",
        "ce-type": "gebaut%20%C3%BC", "ce-subject": ANN, "ce-time": "2026-11-20T07:00:00Z",
        "content-type": "text/plain; charset=utf-8",
    }  # fmt: skip
    answer = await ann.post(PATH, content="zwölf 🙂".encode(), headers=headers)
    assert answer.status_code == 202, answer.text
    ((_, stored),) = await externals(gate)
    assert stored.payload.content == "zwölf 🙂"
    assert stored.payload.kind == "gebaut ü"
    again = await post(ann, event(data="zwölf 🙂", type="gebaut ü"))
    assert again.json() == answer.json(), "the mode is no part of an event"


FORMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"data": "plain"}, "plain"),
    ({"data": None}, ""),
    ({"data": None, "data_base64": "aGVsbG8="}, "hello"),
    ({"data": [1, 2]}, "[1, 2]"),
    ({"time": None}, '{"status": "red"}'),
    ({"agentid": "vigil"}, '{"status": "red"}'),
)


async def test_forms_of_data(gate: Gate) -> None:
    ann = await gate.person("ann")
    for number, (change, content) in enumerate(FORMS):
        session = f"ann:vigil:form{number}"
        body = event(subject=session, id=str(number), **change)
        assert (await post(ann, body)).status_code == 202
        ((_, stored),) = await externals(gate, session)
        assert stored.payload.content == content
        assert (stored.payload.occurred_at is None) == ("time" in change)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"subject": None}, "subject"),
    ({"subject": ""}, "subject"),
    ({"subject": "ann"}, "subject"),
    ({"subject": "ann:vigil:a.b"}, "subject"),
    ({"subject": "ann:*:t1"}, "subject"),
    ({"subject": "ann:vigil:_mind"}, "subject"),
    ({"agentid": "other"}, "agentid"),
    ({"agentid": 5}, "agentid"),
    ({"specversion": "0.3"}, "specversion"),
    ({"specversion": None}, "specversion"),
    ({"id": None}, "id"),
    ({"id": ""}, "id"),
    ({"id": 7}, "id"),
    ({"id": "x" * 257}, "id"),
    ({"source": None}, "source"),
    ({"source": "a\nb"}, "source"),
    ({"source": "a\x9bb"}, "source"),
    ({"source": "x" * 1025}, "source"),
    ({"type": None}, "type"),
    ({"type": "x" * 257}, "type"),
    ({"time": "yesterday"}, "time"),
    ({"time": "2026-13-41T09:00:00Z"}, "time"),
    ({"time": "2026-11-20T09:00:00"}, "time"),
    ({"time": "0001-01-01T00:00:00+14:00"}, "time"),
    ({"time": 5}, "time"),
    ({"data": "a\0b"}, "data"),
    ({"data_base64": "aGk="}, "data"),
    ({"data": None, "data_base64": "a"}, "data_base64"),
    ({"data": None, "data_base64": "/w=="}, "data_base64"),
    ({"data": None, "data_base64": 5}, "data_base64"),
    ({"Nats-Rollup": "all"}, "Nats-Rollup"),
]


async def test_events_that_cannot_be_used(gate: Gate) -> None:
    """SPEC X-6, S-2: 422 naming field and reason; stored nowhere; the next one is taken."""
    ann = await gate.person("ann")
    for change, field in BAD:
        assert_problem(await post(ann, event(**change)), 422, field)
    for body in (b"", b"[]", b"null", b"{", b"\xff", b'{"id":1e999}', b'{"a":' * 50_000):
        assert_problem(await post(ann, body), 422)
    deep = event(data=json.loads("[" * 40 + "]" * 40))
    assert_problem(await post(ann, deep), 422, "body")
    surrogate = json.dumps(event()).replace("red", "\\ud800").encode()
    assert_problem(await post(ann, surrogate), 422)
    headers = [("ce-id", "1"), ("ce-id", "2"), *[(f"ce-{n}", v) for n, v in event().items()]]
    twice = [(n, v) for n, v in headers if isinstance(v, str)]
    assert_problem(await ann.post(PATH, content=b"", headers=twice), 422, "headers")
    assert await externals(gate) == []
    assert gate.stack.contexts["gateway"].bus.violations == []
    assert (await post(ann, event())).status_code == 202


async def test_forms_that_are_not_taken(gate: Gate) -> None:
    """SPEC X-6: batches and other formats get 415 with the way out."""
    ann = await gate.person("ann")
    for media_type in (
        "application/cloudevents-batch+json", "application/cloudevents+avro",
        "application/json", "text/plain", "",
    ):  # fmt: skip
        answer = await post(ann, event(), **{"content-type": media_type})
        assert_problem(answer, 415)
    assert await externals(gate) == []


async def test_sizes(tmp_path: Path) -> None:
    """SPEC X-6: limits as for messages: 413."""
    async with running_gateway(tmp_path, body_bytes_max=4000, text_bytes_max=100) as gate:
        ann = await gate.person("ann")
        assert_problem(await post(ann, event(data="x" * 101)), 413, "data")
        assert_problem(await post(ann, event(data="x" * 5000)), 413, "body")
        assert (await post(ann, event(data="x" * 100))).status_code == 202


async def test_whose_sessions(gate: Gate) -> None:
    """SPEC X-4: one's own; another's is 404; an admin reaches everybody's; no token, no event."""
    ann, admin = await gate.person("ann"), await gate.person("root", is_admin=True)
    other = event(subject="bob:vigil:t1")
    assert_problem(await post(ann, other), 404)
    assert_problem(await post(await gate.http(), event()), 401)
    assert (await post(admin, other)).status_code == 202
    ((_, stored),) = await externals(gate, "bob:vigil:t1")
    assert stored.payload.source == "api:root"


async def test_no_header_and_no_extension_reaches_the_bus(gate: Gate) -> None:
    """RELIABILITY S5: `Nats-*` headers and extension attributes of any name are dropped."""
    ann = await gate.person("ann")
    smuggled = {
        "Nats-Rollup": "all",
        "Nats-Schedule": "@every 1s",
        "Nats-Schedule-Target": "session.vigil.bob.t1.in.said.user",
        "Nats-TTL": "1s",
        "Nats-Expected-Last-Subject-Sequence": "99",
        "Nats-Msg-Id": "stolen",
        "Nats-Trace-Dest": "bob",
        "ce-natsrollup": "all",
        "tracestate": "x=y",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    }
    extensions = {"natsrollup": "all", "traceparent": "x", "istrusted": True, "v": 7}
    assert (await post(ann, event(**extensions), **smuggled)).status_code == 202
    binary = smuggled | {
        f"ce-{n}": str(v) for n, v in event(id="43", **extensions).items() if n != "data"
    }
    assert (await ann.post(PATH, content=b"x", headers=binary)).status_code == 202
    for message, stored in await externals(gate):
        assert set(message.headers) == {"traceparent", "Nats-Msg-Id"}
        assert message.headers["Nats-Msg-Id"] == stored.id
        assert message.headers["traceparent"].startswith(f"00-{'a' * 32}-")
        assert set(json.loads(message.data)) == {
            "type", "id", "session_key", "created_at", "v", "payload",
        }  # fmt: skip
        assert set(json.loads(message.data)["payload"]) <= {
            "source", "content", "kind", "origin", "origin_id", "occurred_at",
        }  # fmt: skip
    assert len(await externals(gate)) == 2


async def test_an_event_is_stored_once(gate: Gate) -> None:
    """RELIABILITY S6: the same id gives the same answer; with another body it's refused."""
    ann = await gate.person("ann")
    first = await post(ann, event())
    for _ in range(3):
        again = await post(ann, event())
        assert (again.status_code, again.json()) == (202, first.json())
    for change in ({"data": "x"}, {"type": "x"}, {"subject": "ann:vigil:t2"}, {"time": None}):
        assert_problem(await post(ann, event(**change)), 422, "id")
    assert len(await externals(gate)) == 1
    assert await externals(gate, "ann:vigil:t2") == []
    assert (await post(ann, event(source="other"))).status_code == 202
    assert len(await externals(gate)) == 2


async def test_ids_are_a_senders_own(gate: Gate) -> None:
    """RELIABILITY S6: an attacker who uses a victim's ids changes nothing for the victim."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    await post(bob, event(subject="bob:vigil:t1", data="mine"))
    assert (await post(ann, event())).status_code == 202
    keyed = {"text": "hi", "idempotency_key": "42"}
    message = await ann.post(f"/api/sessions/{ANN}/messages", json=keyed)
    assert message.status_code == 202
    assert len(await gate.stored(ANN)) == 2


async def test_backlog_leaves_room_for_people(tmp_path: Path) -> None:
    """ARCHITECTURE 3, X-6: events get 429 at half of it, so a person can still speak."""
    async with running_gateway(tmp_path, backlog_max=80) as gate:
        ann = await gate.person("ann")
        answers = [await post(ann, event(id=str(n))) for n in range(50)]
        codes = [answer.status_code for answer in answers]
        assert codes == [202] * 41 + [429] * 9
        assert "retry-after" in answers[-1].headers
        said = await ann.post(f"/api/sessions/{ANN}/messages", json={"text": "hi"})
        assert said.status_code == 202
        queue = tuple(Queued(seq=n, type="external") for n in range(1, 5))
        await gate.turn(ANN, State(position=10**6, turns=1, queue=queue))
        assert (await post(ann, event(id="49"))).status_code == 202, "refused ones may come again"


async def test_a_nearly_full_disk(tmp_path: Path) -> None:
    """RELIABILITY 0.8: as for messages."""
    async with running_gateway(tmp_path, disk_free_bytes_min=2**60) as gate:
        answer = await post(await gate.person("ann"), event())
        assert_problem(answer, 503)
        assert await externals(gate) == []


async def test_an_event_is_for_an_agent_that_there_is(gate: Gate) -> None:
    """SPEC P-5, X-6: a mistyped name makes no agent; one that was talked with has its events."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    problem = assert_problem(await post(ann, event(subject="ann:vigl:t1")), 422, "subject")
    assert "none is called vigl; did you mean vigil?" in problem["detail"]
    assert await gate.admin.read("SESSIONS", ["session.>"]) == []
    said = await ann.post("/api/sessions/ann:coach:t1/messages", json={"text": "Hello"})
    assert said.status_code == 202
    assert (await post(ann, event(subject="ann:coach:t2"))).status_code == 202
    problem = assert_problem(await post(bob, event(subject="bob:coach:t2")), 422, "subject")
    assert "there is: vigil" in problem["detail"], "what another has made is told to nobody"


async def test_an_agent_with_files_or_a_hook_has_events(tmp_path: Path) -> None:
    """One that nobody talked with yet: a folder, a section, or a way in that names it."""
    secret = secret_of("ci")
    hook = {"user": "ann", "agent": "builder", "thread": "t", "secrets": [secret]}
    parts = {"agents": {"scout": {}}, "hooks": {"ci": hook}, "mind": {"enabled": True}}
    (tmp_path / "agents" / "gardener").mkdir(parents=True)
    async with running_stack(tmp_path, services=("gateway",), **parts) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        ann = await gate.person("ann")
        for agent in ("scout", "builder", "gardener"):
            answer = await post(ann, event(id=agent, subject=f"ann:{agent}:t1"))
            assert answer.status_code == 202, answer.text
        mind = event(id="m", subject=None, agentid="scot")
        problem = assert_problem(await post(ann, mind), 422, "agentid")
        assert "none is called scot; did you mean scout?" in problem["detail"]
        assert await gate.admin.read("SYSTEM", ["system.>"]) == []
        assert (await post(ann, mind | {"agentid": "scout"})).status_code == 202
        await gate.close()
