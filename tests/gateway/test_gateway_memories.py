"""/api/memories through the real gateway and the real memory service (SPEC M, P-5, X-4, X-6)."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.gateway import Gate, assert_problem, until
from tests.support.remembering import (
    MEMORIES,
    contents,
    look,
    running_memories,
    save,
    until_vectors,
)
from vigil.errors import InvalidInput
from vigil.marks import erasure
from vigil.settings import tokens
from vigil.subjects import Scope

NOBODY = "0" * 32
of_module = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """For what is about the service, or about everybody's memories."""
    async with running_memories(tmp_path) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memories(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    """One for the whole module: each test has people of its own."""
    async with running_memories(tmp_path_factory.mktemp("memories")) as gate:
        yield gate


_numbers = itertools.count()


@pytest.fixture
def who() -> str:
    return f"ann{next(_numbers)}"


@pytest.fixture
def other() -> str:
    return f"bob{next(_numbers)}"


# ---------------------------------------------------------------- what it does


@of_module
async def test_what_is_saved_is_recalled_at_once_and_says_why(memories: Gate, who: str) -> None:
    """P-5, M-2, M-3: the very next request finds it, with a score made of its parts."""
    ann = await memories.person(who)
    await save(ann, "Ann drinks green tea in the morning", type="preference")
    answer = await ann.post(
        MEMORIES,
        json={
            "content": "The boat is called Marigold",
            "userId": who,
            "agentId": "vigil",
            "source": "import",
            "importance": 0.9,
            "threadId": "harbour",
            "occurredAt": "2026-03-04T05:06:07+02:00",
            "valid_from": "2026-03-01T00:00:00Z",
        },
    )
    assert answer.status_code == 201
    assert set(answer.json()) == {"id", "seq"}
    page = await look(ann, q="what is the name of the boat")
    assert (page["userId"], page["agentId"], page["next_after"]) == (who, "vigil", None)
    assert page["degraded"] == []
    best = page["memories"][0]
    assert best["id"] == answer.json()["id"]
    assert best["seq"] == answer.json()["seq"]
    assert best["content"] == "The boat is called Marigold"
    assert (best["type"], best["source"], best["importance"]) == ("fact", "import", 0.9)
    assert best["threadId"] == "harbour"
    assert datetime.fromisoformat(best["occurredAt"]) == datetime(2026, 3, 4, 3, 6, 7, tzinfo=UTC)
    assert best["score"] == pytest.approx(sum(best["parts"].values()), abs=1e-6)
    assert best["parts"]["text"] > 0
    assert contents(await look(ann, q="green tea"))[0] == "Ann drinks green tea in the morning"


@of_module
async def test_each_mode_answers_alone(memories: Gate, who: str) -> None:
    """M-10: full text alone, vectors alone, and both."""
    ann = await memories.person(who)
    await save(ann, "The garden gate squeaks")
    await until_vectors(ann)
    for mode, part in (("text", "text"), ("vector", "vector"), ("hybrid", "text")):
        (hit,) = (await look(ann, q="garden gate", mode=mode))["memories"]
        assert hit["parts"][part] > 0, mode
        if mode != "hybrid":
            other = {"text": "vector", "vector": "text"}[mode]
            assert other not in hit["parts"], mode


@of_module
async def test_without_a_query_it_lists_sorted_page_by_page(memories: Gate, who: str) -> None:
    """P-5, M-3: recent, importance; pages continue and end."""
    ann = await memories.person(who)
    for number in range(7):
        await save(ann, f"number {number}", importance=((number * 3) % 7) / 10)
    assert contents(await look(ann)) == [f"number {n}" for n in reversed(range(7))]
    assert contents(await look(ann, q="")) == contents(await look(ann, q="  "))
    seen, after = [], None
    for _ in range(5):
        query = {"limit": 3, "sort": "importance"} | ({"after": after} if after else {})
        page = await look(ann, **query)
        assert len(page["memories"]) <= 3
        seen += [memory["importance"] for memory in page["memories"]]
        after = page["next_after"]
        if after is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 7
    assert "score" not in page["memories"][0]


@of_module
async def test_what_does_not_fit_into_an_answer_is_on_the_next_page(
    memories: Gate, who: str
) -> None:
    """Everything has a limit: the largest memories, in pages that the bus can carry."""
    ann = await memories.person(who)
    ids = [await save(ann, f"number {n} " + 'ab "\\ ' * 2700) for n in range(60)]
    seen: list[str] = []
    after: Any = ""
    while after is not None:
        page = await look(ann, limit=200, **({"after": after} if after else {}))
        seen += [memory["id"] for memory in page["memories"]]
        after = page["next_after"]
    assert sorted(seen) == sorted(ids)
    found = await look(ann, q="number", limit=200)
    assert len(found["memories"]) + found["left_out"] == 60
    assert (await ann.get(f"{MEMORIES}/graph", params={"limit": 200})).status_code == 200


@of_module
async def test_filters_narrow_both_the_recall_and_the_list(memories: Gate, who: str) -> None:
    """M-3: source, types (repeated or with commas), time, importance, thread."""
    ann = await memories.person(who)
    day = datetime(2026, 5, 1, 12, tzinfo=UTC)
    for number, (kind, source) in enumerate(
        itertools.product(("fact", "goal", "event"), ("mail", "chat"))
    ):
        await save(
            ann, f"apple {kind} {source}", type=kind, source=source, threadId=f"t{number}",
            occurredAt=(day + timedelta(days=number)).isoformat(), importance=0.5 + number / 20,
        )  # fmt: skip
    wanted: list[tuple[dict[str, Any], set[str]]] = [
        ({"source": "mail"}, {"apple fact mail", "apple goal mail", "apple event mail"}),
        ({"type": "goal,event", "source": "chat"}, {"apple goal chat", "apple event chat"}),
        ({"type": ["goal", "event"], "source": "chat"}, {"apple goal chat", "apple event chat"}),
        ({"since": "2026-05-05T00:00:00Z"}, {"apple event mail", "apple event chat"}),
        ({"until": "2026-05-01T12:00:00Z"}, {"apple fact mail"}),
        ({"threadId": "t3"}, {"apple goal chat"}),
    ]
    for query, found in wanted:
        assert set(contents(await look(ann, **query))) == found, query
        assert set(contents(await look(ann, q="apple", **query))) == found, query


@of_module
async def test_one_memory_with_its_associations_and_the_graph(memories: Gate, who: str) -> None:
    """M-1, M-2: get, associate, links of a save, graph."""
    ann = await memories.person(who)
    one, two = await save(ann, "a sail"), await save(ann, "a mast")
    three = await save(ann, "a boat", links=[{"to_id": one, "relation": "part_of", "weight": 0.7}])
    body = {"from_id": one, "to_id": two, "relation": "related_to"}
    made = (await ann.post(f"{MEMORIES}/associate", json=body)).json()
    assert made == {"edge": {"from_id": one, "to_id": two, "relation": "related_to", "weight": 0.5}}
    detail = (await ann.get(f"{MEMORIES}/{one}")).json()
    assert detail["memory"]["content"] == "a sail"
    assert {(e["from_id"], e["to_id"], e["weight"]) for e in detail["edges"]} == {
        (one, two, 0.5), (three, one, 0.7),
    }  # fmt: skip
    near = (await ann.get(f"{MEMORIES}/graph", params={"id": three})).json()
    assert {node["id"] for node in near["nodes"]} == {three, one}
    far = (await ann.get(f"{MEMORIES}/graph", params={"id": three, "depth": 2})).json()
    assert {node["id"] for node in far["nodes"]} == {three, one, two}
    body["to_id"] = one
    assert_problem(await ann.post(f"{MEMORIES}/associate", json=body), 422, "to_id")
    body["to_id"] = NOBODY
    assert_problem(await ann.post(f"{MEMORIES}/associate", json=body), 404)


@of_module
async def test_what_is_forgotten_is_gone(memories: Gate, who: str) -> None:
    """M-2: no recall, no list, no get, also among those that ended, also as of before."""
    ann = await memories.person(who)
    id_ = await save(ann, "the secret ingredient is cardamom")
    before = datetime.now(UTC)
    answer = await ann.delete(f"{MEMORIES}/{id_}")
    assert (answer.status_code, answer.json()) == (200, {"forgotten": 1})
    assert_problem(await ann.delete(f"{MEMORIES}/{id_}"), 404)
    assert_problem(await ann.get(f"{MEMORIES}/{id_}"), 404)
    assert contents(await look(ann, q="cardamom")) == []
    assert contents(await look(ann, with_ended=True)) == []
    assert contents(await look(ann, q="cardamom", as_of=before.isoformat())) == []


@of_module
async def test_what_was_believed_then_and_undo(memories: Gate, who: str) -> None:
    """M-4: as of a moment; a source is reverted, others stay."""
    ann = await memories.person(who)
    await save(ann, "lunch is at noon", source="chat")
    await save(ann, "lunch is on the moon", source="rumour")
    then = datetime.now(UTC)
    done = (await ann.post(f"{MEMORIES}/undo", json={"source": "rumour"})).json()
    assert len(done["undone"]) == 1
    assert done["restored"] == []
    assert contents(await look(ann, q="lunch")) == ["lunch is at noon"]
    assert "lunch is on the moon" in contents(await look(ann, q="lunch", as_of=then.isoformat()))
    (ended,) = [m for m in (await look(ann, with_ended=True))["memories"] if "ended" in m]
    assert ended["ended"] == "undone"


@of_module
async def test_a_repeat_with_the_same_key_saves_once(memories: Gate, who: str, other: str) -> None:
    """S-4 for memories: after an unknown outcome the same request may be sent again."""
    ann, bob = await memories.person(who), await memories.person(other)
    body = {"content": "only once", "idempotency_key": "k1"}
    first = (await ann.post(MEMORIES, json=body)).json()
    again = (await ann.post(MEMORIES, json=body)).json()
    assert again["id"] == first["id"]
    assert again["is_repeat"] is True
    assert contents(await look(ann)) == ["only once"]
    assert_problem(await ann.post(MEMORIES, json=body | {"content": "something else"}), 409)
    theirs = (await bob.post(MEMORIES, json=body)).json()
    assert theirs["id"] != first["id"]
    assert "is_repeat" not in theirs
    assert (await ann.delete(f"{MEMORIES}/{first['id']}")).status_code == 200
    assert_problem(await ann.post(MEMORIES, json=body), 409)


async def test_stats_and_maintenance(gate: Gate) -> None:
    """M-6, P-5: {pruned, merged, message}; a user's own, an admin's all."""
    ann, root = await gate.person("ann"), await gate.person("root", is_admin=True)
    await save(ann, "a goal", type="goal", source="mail")
    await save(ann, "a fact", source="chat")
    stats = (await ann.get(f"{MEMORIES}/stats")).json()
    assert (stats["memories"], stats["ended"], stats["edges"]) == (2, 0, 0)
    assert stats["by_type"] == {"goal": 1, "fact": 1}
    assert stats["by_source"] == {"mail": 1, "chat": 1}
    assert stats["embedder"]
    assert stats["rebuild"] is None
    for client, body in [
        (ann, None), (ann, {}), (ann, {"agentId": "vigil"}), (ann, {"userId": "ann"}),
        (root, None), (root, {"userId": "ann"}),
    ]:  # fmt: skip
        content = b"" if body is None else json.dumps(body).encode()
        answer = await client.post("/api/maintenance", content=content)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"pruned", "merged", "observed", "message"}
        assert (answer.json()["pruned"], answer.json()["merged"]) == (0, 0)
    assert_problem(await ann.post("/api/maintenance", json={"userId": "root"}), 403, "userId")


async def test_a_rebuild_gives_the_same_answers(gate: Gate) -> None:
    """M-9: for admins; 202 at once, progress in the stats, the same memories after it."""
    ann, root = await gate.person("ann"), await gate.person("root", is_admin=True)
    for number in range(30):
        await save(ann, f"station {number} of the line", threadId="line")
    await until_vectors(ann)
    before = await look(ann, q="station 7", limit=30)
    assert_problem(await ann.post(f"{MEMORIES}/rebuild"), 403)
    for body in (None, {"what": "vectors"}, {"what": "all"}):
        content = b"" if body is None else json.dumps(body).encode()
        answer = await root.post(f"{MEMORIES}/rebuild", content=content)
        assert (answer.status_code, answer.json()) == (202, {"replicas": 1})

        async def is_done() -> bool:
            return (await ann.get(f"{MEMORIES}/stats")).json()["rebuild"] is None

        await until(is_done, "rebuilt", within_s=30)
        await until_vectors(ann)
        after = await look(ann, q="station 7", limit=30)
        assert [m["id"] for m in after["memories"]] == [m["id"] for m in before["memories"]]


# ---------------------------------------------------------------- whose memory


@of_module
async def test_nobody_reaches_another_users_memory(memories: Gate, who: str, other: str) -> None:
    """X-4: every endpoint, by name and by id; an admin may."""
    ann, bob = await memories.person(who), await memories.person(other)
    root = await memories.person("root", is_admin=True)
    id_ = await save(ann, "canary of ann")
    other = await save(bob, "canary of bob")
    named = {"userId": who}
    for answer in (
        await bob.post(MEMORIES, json={"content": "x", **named}),
        await bob.get(MEMORIES, params=named),
        await bob.get(MEMORIES, params={"q": "canary", **named}),
        await bob.get(f"{MEMORIES}/{id_}", params=named),
        await bob.delete(f"{MEMORIES}/{id_}", params=named),
        await bob.get(f"{MEMORIES}/graph", params=named),
        await bob.get(f"{MEMORIES}/stats", params=named),
        await bob.post(f"{MEMORIES}/undo", json={"source": "api", **named}),
        await bob.post(f"{MEMORIES}/associate", json={"from_id": id_, "to_id": other, **named}),
    ):
        assert_problem(answer, 403, "userId")
    assert_problem(await bob.get(f"{MEMORIES}/{id_}"), 404)
    assert_problem(await bob.delete(f"{MEMORIES}/{id_}"), 404)
    assert_problem(await bob.get(f"{MEMORIES}/graph", params={"id": id_}), 404)
    for pair in ({"from_id": id_, "to_id": other}, {"from_id": other, "to_id": id_}):
        assert_problem(await bob.post(f"{MEMORIES}/associate", json=pair), 404)
    await bob.post(MEMORIES, json={"content": "linked", "links": [{"to_id": id_}]})
    shown = json.dumps([await look(bob), await look(bob, q="canary"),
                        (await bob.get(f"{MEMORIES}/graph")).json()])  # fmt: skip
    assert "canary of ann" not in shown
    assert contents(await look(root, q="canary", userId=who)) == ["canary of ann"]
    assert contents(await look(ann, agentId="other")) == []
    await bob.post(f"{MEMORIES}/undo", json={"source": "api"})
    assert contents(await look(ann)) == ["canary of ann"]


DESK = {"kind": "team", "members": ["ann", "bob"]}


async def test_an_agent_of_a_team_has_one_memory_for_all(tmp_path: Path) -> None:
    """M-2: `team`: its users share one; `personal` stays apart; nobody may be called team."""
    async with running_memories(tmp_path, agents={"desk": DESK}) as gate:
        ann, bob = await gate.person("ann"), await gate.person("bob")
        await save(ann, "the printer is out of paper", agentId="desk")
        page = await look(bob, q="printer", agentId="desk")
        assert page["userId"] == "team"
        assert contents(page) == ["the printer is out of paper"]
        assert contents(await look(bob, q="printer")) == []
        body = {"content": "again", "agentId": "desk", "idempotency_key": "k"}
        ids = {(await one.post(MEMORIES, json=body)).json()["id"] for one in (ann, bob)}
        assert len(ids) == 2
        with pytest.raises(InvalidInput, match="team"):
            await tokens.create(gate.operator, user="team", now=datetime.now(UTC))


@of_module
async def test_records_say_who_did_it(memories: Gate, who: str) -> None:
    """M-1: by whom, under whose subject; an admin acts as themselves."""
    ann, root = await memories.person(who), await memories.person("root", is_admin=True)
    await save(ann, "one")
    await save(root, "two", userId=who)
    scope = Scope("vigil", who)
    stored = await memories.admin.read("MEMORIES", [scope.record("save")])
    assert [json.loads(message.data)["by"] for message in stored] == [f"user:{who}", "user:root"]


async def test_nothing_is_saved_for_somebody_who_is_erased(gate: Gate) -> None:
    """X-8: the person is turned away at the door, an admin who writes for them, too."""
    root = await gate.person("root", is_admin=True)
    await erasure.begin(gate.admin, "ann", datetime.now(UTC))

    async def is_refused() -> bool:
        answer = await root.get(MEMORIES, params={"userId": "ann"})
        return bool(answer.status_code == 403)

    await until(is_refused, "the gateway knows of the erasure")
    assert_problem(await root.post(MEMORIES, json={"content": "x", "userId": "ann"}), 403)


async def test_status_tells_of_the_memory_service(gate: Gate) -> None:
    """P-2: it is among the services, with what it is made of."""
    ann = await gate.person("ann")
    status = (await ann.get("/api/status")).json()
    (memory,) = [one for one in status["services"] if one["service"] == "memory"]
    assert memory["ready"] is True
