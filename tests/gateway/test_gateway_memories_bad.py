"""What /api/memories refuses, and that nothing sent to it is a fault or leaks (X-4, X-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.gateway import Gate, assert_problem
from tests.support.remembering import MEMORIES, contents, look, running_memories, save

NOBODY = "0" * 32


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with running_memories(tmp_path) as gate:
        yield gate


# ---------------------------------------------------------------- what is refused


BAD_BODIES: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "content"),
    ({"content": ""}, 422, "content"),
    ({"content": " \n\t"}, 422, "content"),
    ({"content": "a\0b"}, 422, "content"),
    ({"content": "x" * 100_000}, 413, "content"),
    ({"content": "ü" * 8_193}, 413, "content"),
    ({"content": 7}, 422, "content"),
    ({"content": None}, 422, "content"),
    ({"content": ["x"]}, 422, "content"),
    ({"content": "x", "type": "thought"}, 422, "type"),
    ({"content": "x", "type": 1}, 422, "type"),
    ({"content": "x", "importance": 1.1}, 422, "importance"),
    ({"content": "x", "importance": -0.1}, 422, "importance"),
    ({"content": "x", "importance": "high"}, 422, "importance"),
    ({"content": "x", "importance": True}, 422, "importance"),
    ({"content": "x", "source": ""}, 422, "source"),
    ({"content": "x", "source": "  "}, 422, "source"),
    ({"content": "x", "source": "a\0"}, 422, "source"),
    ({"content": "x", "source": "s" * 201}, 422, "source"),
    ({"content": "x", "threadId": "t" * 201}, 422, "threadId"),
    ({"content": "x", "threadId": "\0"}, 422, "threadId"),
    ({"content": "x", "threadId": 3}, 422, "threadId"),
    ({"content": "x", "occurredAt": "yesterday"}, 422, "occurredAt"),
    ({"content": "x", "occurredAt": "2026-01-01T00:00:00"}, 422, "occurredAt"),
    ({"content": "x", "occurredAt": 1_700_000_000}, 422, "occurredAt"),
    ({"content": "x", "occurredAt": "0001-01-01T00:00:00+14:00"}, 422, "occurredAt"),
    ({"content": "x", "expires_at": "2001-01-01T00:00:00Z"}, 422, "expires_at"),
    ({"content": "x", "valid_from": "2026-02-01T00:00:00Z",
      "valid_to": "2026-01-01T00:00:00Z"}, 422, "valid_to"),
    ({"content": "x", "stability": "solid"}, 422, "stability"),
    ({"content": "x", "links": [{"to_id": "x"}]}, 422, "links[0].to_id"),
    ({"content": "x", "links": [{"to_id": NOBODY, "weight": 2}]}, 422, "links[0].weight"),
    ({"content": "x", "idempotency_key": ""}, 422, "idempotency_key"),
    ({"content": "x", "colour": "red"}, 422, "colour"),
    ({"content": "x", "by": "user:root"}, 422, "by"),
    ({"content": "x", "is_tainted": "no"}, 422, "is_tainted"),
    ({"content": "x", "agentId": "a.b"}, 422, "agentId"),
    ({"content": "x", "agentId": "*"}, 422, "agentId"),
    ({"content": "x", "agentId": ""}, 422, "agentId"),
    ({"content": "x", "userId": "a b"}, 422, "userId"),
    ({"content": "x", "userId": ">"}, 422, "userId"),
    ({"content": "x", "userId": ""}, 422, "userId"),
]  # fmt: skip


async def test_bad_bodies_are_refused_with_field_and_reason(gate: Gate) -> None:
    """X-6, issue 4: empty, 100 kB, NUL, wrong types, unknown keys; nothing reaches the log."""
    ann = await gate.person("ann")
    for body, status, field in BAD_BODIES:
        answer = await ann.post(MEMORIES, json=body)
        problem = assert_problem(answer, status)
        assert problem["field"] == field, (body, problem)
    for raw in (b"", b"[]", b"null", b"{", b'{"content":"\xff"}', b'{"content":"\\ud800"}'):
        assert_problem(await ann.post(MEMORIES, content=raw), 422)
    deep = b'{"content":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert_problem(await ann.post(MEMORIES, content=deep), 422, "content")
    assert_problem(await ann.post(MEMORIES, content=b" " * 300_000), 413, "body")
    assert contents(await look(ann)) == []
    assert await gate.admin.read("MEMORIES", ["memory.>"]) == []


BAD_QUERIES: list[tuple[str, str]] = [
    ("colour=red", "colour"), ("Q=x", "Q"), ("user=ann", "user"), ("types=fact", "types"),
    ("limit=0", "limit"), ("limit=201", "limit"), ("limit=ten", "limit"), ("limit=1.5", "limit"),
    ("limit=-1", "limit"), ("limit=1&limit=2", "limit"), ("q=a&q=b", "q"), ("q=%00", "q"),
    ("type=thought", "type"), ("type=fact,thought", "type"), ("source=a%00", "source"),
    ("since=monday", "since"), ("since=2026-01-01T00:00:00", "since"),
    ("until=0001-01-01T00:00:00%2B14:00", "until"), ("as_of=", "as_of"),
    ("importance_min=2", "importance_min"), ("importance_min=nan", "importance_min"),
    ("importance_min=inf", "importance_min"), ("importance_min=x", "importance_min"),
    ("q=a&mode=fast", "mode"), ("mode=text", "mode"), ("sort=size", "sort"),
    ("q=a&sort=recent", "sort"), ("q=a&after=x", "after"), ("q=a&with_ended=true", "with_ended"),
    ("with_pruned=true", "with_pruned"),
    ("with_ended=perhaps", "with_ended"), ("after=nonsense", "after"),
    ("q=%ff", "query"), ("agentId=a.b", "agentId"), ("agentId=", "agentId"),
    ("userId=%2A", "userId"), ("&".join(f"a{n}=1" for n in range(60)), "query"),
]  # fmt: skip


async def test_bad_queries_are_refused_with_field_and_reason(gate: Gate) -> None:
    """X-6, issue 4: unknown filter keys, wrong types, out of range: never silently dropped."""
    ann = await gate.person("ann")
    for query, field in BAD_QUERIES:
        problem = assert_problem(await ann.get(f"{MEMORIES}?{query}"), 422)
        assert problem["field"] == field, (query, problem)
    for path in (f"{MEMORIES}/{NOBODY}", f"{MEMORIES}/stats", f"{MEMORIES}/graph"):
        assert_problem(await ann.get(f"{path}?depht=2"), 422, "depht")
    assert_problem(await ann.get(f"{MEMORIES}/graph?depth=4"), 422, "depth")
    assert_problem(await ann.get(f"{MEMORIES}/graph?id=x"), 422, "id")
    for id_ in ("x", "%00", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "..%2f..", "*"):
        for method in ("GET", "DELETE"):
            answer = await ann.request(method, f"{MEMORIES}/{id_}")
            assert answer.status_code in (404, 422), (id_, answer.text)
            assert_problem(answer, answer.status_code)
    for path in (MEMORIES, f"{MEMORIES}/{NOBODY}", f"{MEMORIES}/rebuild", "/api/maintenance"):
        assert_problem(await ann.put(path), 405)


async def test_without_a_memory_service_it_is_a_503_and_comes_back(tmp_path: Path) -> None:
    """X-6: not now, with Retry-After, on every endpoint; then it works again."""
    async with running_memories(tmp_path) as gate:
        root = await gate.person("root", is_admin=True)
        id_ = await save(root, "still here")
        await gate.stack.stop("memory")
        other = "1" * 32
        for answer in (
            await root.post(MEMORIES, json={"content": "x"}),
            await root.get(MEMORIES),
            await root.get(MEMORIES, params={"q": "x"}),
            await root.get(f"{MEMORIES}/{id_}"),
            await root.delete(f"{MEMORIES}/{id_}"),
            await root.get(f"{MEMORIES}/graph"),
            await root.get(f"{MEMORIES}/stats"),
            await root.post(f"{MEMORIES}/undo", json={"source": "x"}),
            await root.post(f"{MEMORIES}/associate", json={"from_id": id_, "to_id": other}),
            await root.post(f"{MEMORIES}/rebuild"),
            await root.post("/api/maintenance"),
        ):
            assert_problem(answer, 503)
            assert int(answer.headers["retry-after"]) >= 1
            assert "memory" in answer.json()["detail"]
        await gate.stack.start("memory")
        assert contents(await look(root, q="here")) == ["still here"]


# ---------------------------------------------------------------- anything

NASTY = [
    "", " ", "\u0000", "'", '"', "''; DROP TABLE memories; --", "' OR 1=1 --", '" OR "1"="1', "%",
    "_", "*", "canary*", "NEAR(canary, 5)", "canary AND", "AND OR NOT", "terms:canary",
    "facets:a", "text_1", "text_2:canary", "^canary", "canary + ann", "(canary", ")", "{}", "[]",
    "\\", "\\u0000", "a\r\nNats-Rollup: all", ">", "memory.>", "rpc.memory.recall.vigil.ann",
    "../../etc/passwd", "${jndi:ldap://x}", "{{7*7}}", "\u202eabc", "\ufeff", "\ud7ff", "🙂" * 50,
    "ann", "vigil", "team", "null", "true", "NaN", "-1", "1e999", "9" * 400, "0x10",
    "2026-01-01T00:00:00Z", NOBODY, "G" * 32, "MATCH 'canary'", "SELECT content FROM memories",
    "rank MATCH 'bm25(1)'", "x" * 5000,
]  # fmt: skip
ANY = st.one_of(st.sampled_from(NASTY), st.text(max_size=40), st.sampled_from(["canary", "of ann"]))
LOOK = ("q", "source", "type", "limit", "since", "until", "importance_min", "as_of", "threadId",
        "mode", "sort", "after", "with_ended", "with_pruned", "agentId", "userId",
        "colour")  # fmt: skip
SAVE = ("content", "type", "source", "importance", "threadId", "occurredAt", "stability",
        "expires_at", "valid_from", "idempotency_key", "agentId", "userId", "links")  # fmt: skip
QUERIES = st.dictionaries(st.sampled_from(LOOK), ANY, max_size=4)
BODIES = st.dictionaries(
    st.sampled_from(SAVE), st.one_of(ANY, st.integers(), st.floats(0, 1), st.none()), max_size=5
)
REQUESTS = st.one_of(
    st.tuples(st.just("GET"), st.just(MEMORIES), QUERIES, st.none()),
    st.tuples(
        st.just("GET"),
        st.just(MEMORIES),
        st.fixed_dictionaries({"q": ANY}, optional={"source": ANY, "threadId": ANY}),
        st.none(),
    ),
    st.tuples(
        st.just("GET"),
        st.just(f"{MEMORIES}/graph"),
        st.dictionaries(st.sampled_from(("id", "depth", "limit", "agentId")), ANY, max_size=3),
        st.none(),
    ),
    st.tuples(
        st.sampled_from(("GET", "DELETE")),
        ANY.map(lambda text: f"{MEMORIES}/{quote(text, safe='')}"),
        st.dictionaries(st.sampled_from(("agentId", "userId")), ANY, max_size=2),
        st.none(),
    ),
    st.tuples(st.just("POST"), st.just(MEMORIES), st.just({}), BODIES),
    st.tuples(
        st.just("POST"),
        st.just(MEMORIES),
        st.just({}),
        st.fixed_dictionaries({"content": ANY}, optional={"source": ANY, "threadId": ANY}),
    ),
    st.tuples(
        st.just("POST"),
        st.just(f"{MEMORIES}/undo"),
        st.just({}),
        st.fixed_dictionaries({"source": ANY}, optional={"agentId": ANY}),
    ),
    st.tuples(
        st.just("POST"),
        st.just(f"{MEMORIES}/associate"),
        st.just({}),
        st.dictionaries(
            st.sampled_from(("from_id", "to_id", "relation", "weight")), ANY, max_size=4
        ),
    ),
    st.tuples(
        st.just("POST"),
        st.just("/api/maintenance"),
        st.just({}),
        st.dictionaries(st.sampled_from(("agentId", "userId", "what")), ANY, max_size=2),
    ),
)


@pytest.mark.hypothesis
async def test_whatever_bob_sends_he_gets_no_fault_and_nothing_of_anns(tmp_path: Path) -> None:
    """X-4, X-6, issue 4: SQL and FTS syntax in every string: clear errors, no cross-talk, ever."""
    limits = {"rate_per_s": 100_000.0, "rate_burst": 100_000}
    async with running_memories(tmp_path, gateway=limits) as gate:
        ann = await gate.person("ann")
        canaries = [f"canary {number} of ann, the harbour is at low tide" for number in range(5)]
        ids = [await save(ann, text, source="harbour", threadId="t") for text in canaries]
        token = await gate.token("bob")
        await asyncio.to_thread(_fuzz, gate.port, token, ids)
        assert sorted(contents(await look(ann))) == canaries
        assert len(contents(await look(ann, q="canary"))) == 5
        assert gate.stack.contexts["memory"].bus.violations == []
        stored = await gate.admin.read("MEMORIES", ["memory.>"])
        of_others = {m.subject for m in stored if ".bob." not in m.subject}
        assert of_others <= {"memory.vigil.ann.save", "memory.vigil.ann.access"}


def _fuzz(port: int, token: str, ids: list[str]) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=url, headers=headers, timeout=30) as bob:

        @up_to(400, suppress_health_check=list(HealthCheck), database=None)
        @given(REQUESTS, st.sampled_from(ids))
        def try_one(wanted: Any, id_: str) -> None:
            method, path, query, body = wanted
            # Now and then the place of the missing id is taken by one of ann's.
            query, body = (_with(values, id_) for values in (query, body))
            path = path.replace(NOBODY, id_)
            options = {} if body is None else {"json": body}
            answer = bob.request(method, path, params=query, **options)
            assert answer.status_code < 500, (wanted, answer.text)
            assert "low tide" not in answer.text, (wanted, answer.text)
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["detail"]
                assert "sqlite" not in answer.text.lower()

        try_one()


def _with(values: Any, id_: str) -> Any:
    if values is None:
        return None
    return {name: id_ if value == NOBODY else value for name, value in values.items()}
