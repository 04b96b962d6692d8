"""What may come in: session keys, bodies, headers, limits. And what is stored of it."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from services.gateway.http.problem import Problem, unavailable
from services.gateway.patience import patiently
from tests.support.gateway import Gate, assert_problem, running_gateway, until
from vigil.contracts import Queued, State, UserMessage, decode_event
from vigil.errors import OutcomeUnknown

ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"
NOON = "2026-11-20T12:00:00Z"

BAD_PARTS = [
    "", ".", "*", ">", "a b", "a\tb", "a\r\nNats-Rollup: all", "a\0b", "$JS", "..", "a.b", "t*",
    "t>", "x" * 65, "x" * 5000, "🙂", "a\u202eb", "аnn", "é", "a/b", "a%b",
]  # fmt: skip
"""RELIABILITY S4: what must never become a part of a subject."""


async def _everything(gate: Gate) -> int:
    """Count the messages of all streams that a client could reach."""
    info = await gate.admin.api("STREAM.INFO.SESSIONS", {})
    return int(info["state"]["messages"])


async def test_session_keys_that_are_not_plain_are_refused(gate: Gate) -> None:
    """SPEC S-2, X-6; RELIABILITY S4: 422 or 404, nothing stored, the connection stays."""
    client = await gate.person("ann", is_admin=True)
    for bad, place in itertools.product(BAD_PARTS, (0, 1, 2)):
        parts = ["ann", "vigil", "t1"]
        parts[place] = bad
        path = f"/api/sessions/{quote(':'.join(parts), safe='')}"
        for method, tail in [("POST", "/messages"), ("GET", ""), ("POST", "/stop")]:
            answer = await client.request(method, path + tail, json={"text": "hi"})
            assert answer.status_code in (404, 422), (bad, answer.text)
            assert_problem(answer, answer.status_code)
        body = {"message": "hi", "userId": parts[0], "agentId": parts[1], "threadId": parts[2]}
        field = ("userId", "agentId", "threadId")[place]
        assert_problem(await client.post("/api/chat", json=body), 422, field)
    assert await _everything(gate) == 0
    assert gate.stack.contexts["gateway"].bus.violations == []
    assert (await client.post(MESSAGES, json={"text": "hi"})).status_code == 202


async def test_session_keys_of_another_form_are_refused(gate: Gate) -> None:
    """SPEC S-2; RELIABILITY S4: extra or missing parts."""
    client = await gate.person("ann", is_admin=True)
    for key in ("ann", "ann:vigil", "ann:vigil:t1:x", "::", "%FF:vigil:t"):
        assert_problem(await client.post(f"/api/sessions/{key}/messages", json={"text": "x"}), 422)


async def test_similar_keys_are_different_sessions(gate: Gate) -> None:
    """RELIABILITY S4: a collision of parts, and case."""
    client = await gate.person("ann", is_admin=True)
    keys = ["a:b:c", "a_b:c:d", "a:b_c:d", "A:b:c", "a-b:c:d"]
    for key in keys:
        await client.post(f"/api/sessions/{key}/messages", json={"text": key})
    for key in keys:
        found = (await client.get(f"/api/sessions/{key}")).json()["messages"]
        assert [message["text"] for message in found] == [key]


async def test_threads_of_the_cortex_are_refused(gate: Gate) -> None:
    """SPEC S-2: threads that start with an underscore."""
    client = await gate.person("ann")
    answer = await client.post("/api/sessions/ann:vigil:_autonomy/messages", json={"text": "x"})
    assert_problem(answer, 422, "threadId")
    body = {"message": "x", "userId": "ann", "threadId": "_cron-1"}
    assert_problem(await client.post("/api/chat", json=body), 422, "threadId")
    assert await _everything(gate) == 0


async def test_no_header_of_a_client_reaches_the_bus(gate: Gate) -> None:
    """RELIABILITY S5: only our trace context and message id are stored."""
    client = await gate.person("ann")
    smuggled = {
        "Nats-Rollup": "all",
        "Nats-Schedule": "@every 1s",
        "Nats-Schedule-Target": "session.vigil.bob.t1.in.said.user",
        "Nats-TTL": "1s",
        "Nats-Expected-Last-Sequence": "99",
        "Nats-Expected-Last-Subject-Sequence": "99",
        "Nats-Msg-Id": "stolen",
        "Nats-Trace-Dest": "bob",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        "tracestate": "x=y",
    }
    answer = await client.post(MESSAGES, json={"text": "hi"}, headers=smuggled)
    assert answer.status_code == 202
    (stored,) = await gate.stored(ANN)
    assert set(stored.headers) == {"traceparent", "Nats-Msg-Id"}
    assert stored.headers["Nats-Msg-Id"] == answer.json()["event_id"]
    assert stored.headers["traceparent"].startswith(f"00-{'a' * 32}-")
    assert "b" * 16 not in stored.headers["traceparent"]
    bad = {"traceparent": "00-zz\x20Nats-Rollup:all-01"}
    await client.post(MESSAGES, json={"text": "two"}, headers=bad)
    assert "zz" not in (await gate.stored(ANN))[1].headers["traceparent"]


async def test_what_is_stored_is_built_field_by_field(gate: Gate) -> None:
    """SPEC S-1; RELIABILITY S5: envelope fields come from an allow-list."""
    client = await gate.person("ann")
    forged = {"text": "hi", "id": "x", "created_at": "2000-01-01T00:00:00Z"}
    assert_problem(await client.post(MESSAGES, json=forged), 422, "id")
    accepted = (await client.post(MESSAGES, json={"text": "zwölf 🙂\n\x01"})).json()
    (stored,) = await gate.stored(ANN)
    event = decode_event(stored.data)
    assert isinstance(event, UserMessage)
    assert (event.id, stored.seq) == (accepted["event_id"], accepted["seq"])
    assert event.session_key == ANN
    assert event.payload.text == "zwölf 🙂\n\x01"
    assert stored.subject == "session.vigil.ann.t1.in.said.user"


BAD_BODIES: list[tuple[bytes, str | None]] = [
    (b"", "body"),
    (b"{", "body"),
    (b"[]", "body"),
    (b"null", "body"),
    (b'"text"', "body"),
    (b"{}", "text"),
    (b'{"text":1}', "text"),
    (b'{"text":null}', "text"),
    (b'{"text":["a"]}', "text"),
    (b'{"text":"a"} {"text":"b"}', "body"),
    (b'{"text":"a","colour":1}', "colour"),
    (b'{"text":"a","idempotency_key":5}', "idempotency_key"),
    (b'{"text":"a","idempotency_key":""}', "idempotency_key"),
    (b'{"text":"a","idempotency_key":"' + b"k" * 257 + b'"}', "idempotency_key"),
    (b'{"text":""}', "text"),
    (b'{"text":" \\n\\t"}', "text"),
    (b'{"text":"a\\u0000b"}', "text"),
    (b'{"text":"\\ud800"}', "body"),
    (b'{"text":"\\ud800\\u0041"}', "body"),
    (b'{"text":"\xff\xfe"}', "body"),
    (b'{"text":"\xed\xa0\x80"}', "body"),
    (b'{"\xff":1}', "body"),
    (b'\xef\xbb\xbf{"text":"a"}', "body"),
    (b'{"text":NaN}', None),
    (b'{"text":' + b"[" * 33 + b"]" * 33 + b"}", "text"),
    (b'{"text":' + b"[" * 100_000, "text"),
    (b'{"a":' * 40_000, "a"),
]


async def test_bodies_that_cannot_be_used(gate: Gate) -> None:
    """SPEC X-6: 422 naming field and reason; the event is stored nowhere; still alive after."""
    client = await gate.person("ann")
    for body, field in BAD_BODIES:
        assert_problem(await client.post(MESSAGES, content=body), 422, field)
    assert await _everything(gate) == 0
    assert (await client.post(MESSAGES, json={"text": "still here"})).status_code == 202


async def test_nul_is_refused_in_whatever_text(gate: Gate) -> None:
    """As the document says of each text of a body and each parameter of a query."""
    client = await gate.person("ann", is_admin=True)
    bodies = {
        MESSAGES: ({"text": "a", "idempotency_key": "a\0b"}, "idempotency_key"),
        "/api/sessions/ann:vigil:t1/past": (
            {
                "origin": "hermes",
                "conversation": "a",
                "total": 1,
                "messages": [{"id": "a\0b", "role": "user", "text": "a", "at": NOON}],
            },
            "messages[0].id",
        ),
    }
    for path, (body, field) in bodies.items():
        assert_problem(await client.post(path, json=body), 422, field)
    for query, field in (
        ("contacts?q=a%00b", "q"),
        ("sessions?limit=2&words=%00", "words"),
        ("dead?service=%00", "service"),
        ("ws?session=ann:vigil:t1&client=%00", "client"),
        ("contacts?%00=a", "query"),
    ):
        assert_problem(await client.get(f"/api/{query}"), 422, field)
    assert await _everything(gate) == 0


COMPRESSED = {
    MESSAGES: {}, "/api/chat": {}, "/api/events": {"content-type": "application/cloudevents+json"},
    "/api/attachments": {"content-type": "image/png"}, "/api/memories": {}, "/mcp": {},
}  # fmt: skip


async def test_compressed_bodies_are_told_so(gate: Gate) -> None:
    """SPEC X-6: 415 with what is taken, wherever a body is; identity is no compression. An event
    whose attributes are headers would have been stored as what it isn't.
    """
    client = await gate.person("ann")
    binary = {
        "ce-specversion": "1.0", "ce-id": "1", "ce-source": "a", "ce-type": "b", "ce-subject": ANN,
        "content-type": "application/octet-stream",
    }  # fmt: skip
    for path, headers in [*COMPRESSED.items(), ("/api/events", binary)]:
        coded = headers | {"content-encoding": "gzip"}
        answer = await client.post(path, content=gzip.compress(b"{}"), headers=coded)
        assert_problem(answer, 415)
        assert answer.headers["accept-encoding"] == "identity"
    assert await _everything(gate) == 0
    plain = {"content-encoding": "Identity"}
    assert (await client.post(MESSAGES, json={"text": "a"}, headers=plain)).status_code == 202


async def test_bodies_too_large(tmp_path: Path) -> None:
    """SPEC X-6: announced, chunked, and a text beyond its own limit: 413."""
    async with running_gateway(tmp_path, body_bytes_max=10_000, text_bytes_max=1000) as gate:
        token = await gate.token("ann")
        client = await gate.http(token)
        assert_problem(await client.post(MESSAGES, content=b"x" * 10_001), 413, "body")

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 1000

        assert_problem(await client.post(MESSAGES, content=endless()), 413, "body")
        assert_problem(await client.post(MESSAGES, json={"text": "x" * 1001}), 413, "text")
        assert_problem(await client.post(MESSAGES, json={"text": "🙂" * 251}), 413, "text")
        assert (await client.post(MESSAGES, json={"text": "🙂" * 250})).status_code == 202
        head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: "
        for length in ("-1", "99999999999999999999999", "1e3"):
            request = f"POST {MESSAGES} HTTP/1.1\r\n{head}{length}\r\n\r\n"
            status = (await gate.raw(request.encode())).split(b" ")[1]
            assert status in (b"400", b"413"), status


async def test_heads_too_large_and_requests_that_are_no_http(gate: Gate) -> None:
    """SPEC X-6; RELIABILITY S20: also what never becomes a request is answered in our form."""
    line = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    for request, status in [
        (line + b"X: " + b"a" * 100_000, b"431"),
        (line + b"X: a\r\n" * 20_000, b"431"),
        (b"GET /" + b"a" * 100_000, b"431"),
        (b"nonsense\r\n\r\n", b"400"),
    ]:
        answer = await gate.raw(request)
        assert answer.split(b" ")[1] == status, answer[:200]
        assert b"application/problem+json" in answer


async def test_rate_per_token(tmp_path: Path) -> None:
    """SPEC X-6: a token bucket for each token: 429 with Retry-After; others aren't affected."""
    async with running_gateway(tmp_path, rate_per_s=0.5, rate_burst=3) as gate:
        ann, bob = await gate.person("ann"), await gate.person("bob")
        answers = [await ann.post(MESSAGES, json={"text": "hi"}) for _ in range(5)]
        assert [answer.status_code for answer in answers[:3]] == [202] * 3
        assert_problem(answers[-1], 429)
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
        assert (await bob.get("/api/me")).status_code == 200


async def test_backlog(tmp_path: Path) -> None:
    """ARCHITECTURE 3: beyond `backlog_max` unprocessed events 429, until the session catches up."""
    async with running_gateway(tmp_path, backlog_max=40) as gate:
        ann = await gate.person("ann")
        answers = [await ann.post(MESSAGES, json={"text": "hi"}) for _ in range(50)]
        codes = [answer.status_code for answer in answers]
        assert codes == [202] * 41 + [429] * 9
        assert "retry-after" in answers[-1].headers
        other = await ann.post("/api/sessions/ann:vigil:t2/messages", json={"text": "hi"})
        assert other.status_code == 202
        assert (await ann.post(f"/api/sessions/{ANN}/stop")).status_code == 202
        await gate.turn(ANN, State(position=answers[30].json()["seq"], turns=1))
        assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202


async def test_what_waits_in_the_session_is_backlog_too(tmp_path: Path) -> None:
    """ARCHITECTURE 3: folded at once while a loop is open, so the position alone tells nothing."""
    async with running_gateway(tmp_path, backlog_max=40) as gate:
        ann = await gate.person("ann")
        queue = tuple(Queued(seq=n, type="user_message") for n in range(1, 42))
        await gate.turn(ANN, State(position=10**6, turns=1, queue=queue))
        answers = [await ann.post(MESSAGES, json={"text": "hi"}) for _ in range(34)]
        assert [answer.status_code for answer in answers[-2:]] == [429, 429]
        await gate.turn(ANN, State(position=10**6, turns=2, queue=queue[:10]))
        assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202


async def test_a_person_is_too_far_behind_over_many_threads(tmp_path: Path) -> None:
    """Issue 10: 429 with the reason, for them alone; over once their sessions get further."""

    def path(number: int) -> str:
        return f"/api/sessions/ann:vigil:t{number}/messages"

    async with running_gateway(tmp_path, person_backlog_max=10) as gate:
        ann, bob = await gate.person("ann"), await gate.person("bob")
        seqs = []
        for number in range(10):
            answer = await ann.post(path(number), json={"text": "hi"})
            seqs.append(answer.json()["seq"])
        problem = assert_problem(await ann.post(path(10), json={"text": "hi"}), 429)
        assert "person_backlog_max" in problem["detail"]
        keyed = {"text": "hi", "idempotency_key": "k"}
        answer = await ann.post(path(11), json=keyed)
        assert_problem(answer, 429)
        assert int(answer.headers["retry-after"]) >= 1
        assert (await ann.post("/api/sessions/ann:vigil:t1/stop")).status_code == 202
        other = "/api/sessions/bob:vigil:t1/messages"
        assert (await bob.post(other, json={"text": "hi"})).status_code == 202

        await gate.turn("ann:vigil:t3", State(position=seqs[3], turns=1))
        queue = (Queued(seq=seqs[4], type="user_message"),)  # folded, not answered
        await gate.turn("ann:vigil:t4", State(position=seqs[4], turns=1, queue=queue))

        async def has_room() -> bool:
            return (await ann.post(path(11), json=keyed)).status_code == 202

        await until(has_room, "the person has room for one")
        assert_problem(await ann.post(path(12), json={"text": "hi"}), 429)


async def test_what_was_erased_holds_nobody_up(tmp_path: Path) -> None:
    """Who comes back after their erasure isn't behind with what is gone."""
    async with running_gateway(tmp_path, person_backlog_max=3) as gate:
        ann = await gate.person("ann")
        for number in range(3):
            path = f"/api/sessions/ann:vigil:t{number}/messages"
            assert (await ann.post(path, json={"text": "hi"})).status_code == 202
        await gate.admin.api("STREAM.PURGE.SESSIONS", {"filter": "session.*.ann.>"})
        assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202


async def test_other_systems_may_fill_half_of_a_persons_bound(tmp_path: Path) -> None:
    """D-1: and the person can still speak."""
    async with running_gateway(tmp_path, person_backlog_max=4) as gate:
        ann = await gate.person("ann")
        kind = {"content-type": "application/cloudevents+json"}
        statuses = []
        for number in range(3):
            event = {
                "specversion": "1.0", "id": str(number), "source": "s", "type": "t",
                "subject": f"ann:vigil:e{number}",
            }  # fmt: skip
            answer = await ann.post("/api/events", content=json.dumps(event), headers=kind)
            statuses.append(answer.status_code)
        assert statuses == [202, 202, 429]
        assert (await ann.post(MESSAGES, json={"text": "hi"})).status_code == 202


async def test_a_nearly_full_disk(tmp_path: Path) -> None:
    """RELIABILITY 0.8: with the embedded broker, 503 before the disk is full."""
    async with running_gateway(tmp_path, disk_free_bytes_min=2**60) as gate:
        ann = await gate.person("ann")
        event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "subject": ANN}
        kind = {"content-type": "application/cloudevents+json"}
        for answer in (
            await ann.post(MESSAGES, json={"text": "hi"}),
            await ann.post(MESSAGES, json={"text": "hi", "idempotency_key": "k"}),
            await ann.post("/api/events", content=json.dumps(event), headers=kind),
        ):
            assert_problem(answer, 503)
            assert "retry-after" in answer.headers
        assert await gate.stored(ANN) == []
        # Nothing at all is written there: the broker would be silent for seconds.
        assert await gate.admin.read("KV_IDEMPOTENCY", ["$KV.IDEMPOTENCY.>"]) == []
        told = await ann.get("/readyz")
        assert (told.status_code, told.json()["checks"]["disk"]) == (503, False)


async def test_a_full_disk_ends_patience() -> None:
    """RELIABILITY 0.8: a broker that is silent since its disk is full isn't asked again."""
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        raise OutcomeUnknown("the broker did not answer in time")

    def check() -> None:
        raise unavailable("the disk is nearly full")

    with pytest.raises(Problem, match="disk"):
        await patiently(work, check)
    assert tries == 1


async def test_keyed_messages_are_stored_once(gate: Gate) -> None:
    """SPEC X-5; RELIABILITY S6: the same key gives the same answer, another text is refused."""
    ann = await gate.person("ann")
    keyed = {"text": "hi", "idempotency_key": "k/1 *>"}
    first = await ann.post(MESSAGES, json=keyed)
    for _ in range(3):
        again = await ann.post(MESSAGES, json=keyed)
        assert (again.status_code, again.json()) == (202, first.json())
    assert_problem(await ann.post(MESSAGES, json=keyed | {"text": "ho"}), 422, "idempotency_key")
    (stored,) = await gate.stored(ANN)
    assert json.loads(stored.data)["payload"] == {"text": "hi", "is_keyed": True}


async def test_keys_are_a_persons_own(gate: Gate) -> None:
    """RELIABILITY S6: another's key, and the same key in another session, change nothing."""
    ann, bob = await gate.person("ann"), await gate.person("bob", is_admin=True)
    ids: set[str] = set()
    for client, session in [(ann, ANN), (ann, "ann:vigil:t2"), (bob, ANN), (bob, "bob:vigil:t1")]:
        answer = await client.post(
            f"/api/sessions/{session}/messages",
            json={"text": str(len(ids)), "idempotency_key": "k"},
        )
        assert answer.status_code == 202
        ids.add(answer.json()["event_id"])
    assert len(ids) == 4
    assert await _everything(gate) == 4


async def test_a_key_without_a_known_place_is_published_again(gate: Gate) -> None:
    """SPEC X-5: a crash between the two writes of a keyed message loses and doubles nothing."""
    ann = await gate.person("ann")
    keyed = {"text": "hi", "idempotency_key": "k"}
    first = (await ann.post(MESSAGES, json=keyed)).json()
    (entry,) = await gate.admin.read("KV_IDEMPOTENCY", ["$KV.IDEMPOTENCY.>"])
    cut = {name: value for name, value in json.loads(entry.data).items() if name != "seq"}
    await gate.admin.publish(entry.subject, json.dumps(cut).encode())
    assert (await ann.post(MESSAGES, json=keyed)).json() == first
    assert len(await gate.stored(ANN)) == 1


async def test_blanks_around_a_header_are_no_part_of_it(gate: Gate) -> None:
    """RFC 9110, 5.5: a proxy, or a person, may leave them at the end; MCP asks for it by name."""
    token = await gate.token("ann")
    for after in ("", " ", " \t "):
        head = (
            f"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization:  Bearer {token}{after}\r\n"
        )
        answer = await gate.raw(f"{head}Connection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200"), (after, answer[:80])
