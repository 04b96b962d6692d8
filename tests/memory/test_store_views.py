"""Lists, graphs and figures: filters inside SQL, pages, what is never shown (SPEC M-2 to M-7)."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.rules import decide
from services.memory.rules.instants import DAY as DAY_MICROS
from services.memory.store import views
from services.memory.store.fold import Entry
from services.memory.store.store import Store
from tests.support.memory_records import (
    ANN,
    BOB,
    DAY,
    T0,
    about,
    accessed,
    associated,
    at,
    edge,
    forgotten,
    ids,
    memory_id,
    merged,
    saved,
)
from vigil.contracts import IMPORTANCE, MemoriesAccessed
from vigil.errors import InvalidInput, NotFound
from vigil.memory.operations.graph import GetGraph
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.stats import GetStats
from vigil.memory.questions import ANSWER_BYTES_MAX, CONTENT_BYTES_MAX
from vigil.subjects import Scope

NOW = T0 + DAY
NOBODY = Scope("vigil", "nobody")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def listed(store: Store, scope: Scope = ANN, **question: Any) -> list[int]:
    found = await store.list(scope, ListMemories(**question), NOW)
    return [int(each.id, 16) for each in found.memories]


async def pages(store: Store, **question: Any) -> list[int]:
    """Everything, page by page."""
    found: list[int] = []
    after = ""
    while True:
        page = await store.list(ANN, ListMemories(after=after, **question), NOW)
        found += [int(each.id, 16) for each in page.memories]
        if page.next_after is None:
            return found
        assert page.memories
        assert len(page.next_after) <= 200
        after = page.next_after


# ---------------------------------------------------------------- lists


async def test_filters(store: Store) -> None:
    """M-3: source, types, time, importance, thread; ends of a time included."""
    await store.apply(
        [
            saved(1, source="chat:t1", type="goal", importance=0.9, thread="t1"),
            saved(2, source="chat:t1", type="fact", importance=0.5),
            saved(3, source="api", type="event", importance=0.2, occurred_at=at(-60)),
            saved(4, source="chat:t1", scope=BOB),
            saved(5, source="", type="fact", importance=0.6, thread="t1"),
        ]
    )
    assert await listed(store) == [5, 2, 1, 3]
    assert await listed(store, source="chat:t1") == [2, 1]
    assert await listed(store, source="chat:") == [2, 1], "all that begin so"
    assert await listed(store, source="cha:") == []
    assert await listed(store, types=("goal", "event", "goal")) == [1, 3]
    assert await listed(store, since=at(2)) == [5, 2]
    assert await listed(store, until=at(1)) == [1, 3]
    assert await listed(store, since=at(-60), until=at(-60)) == [3]
    assert await listed(store, importance_min=0.6) == [5, 1]
    assert await listed(store, thread="t1") == [5, 1]
    assert await listed(store, source="chat:t1", types=("fact",), importance_min=0.1) == [2]
    assert await listed(store, source="chat:t1", thread="t1", since=at(0), until=NOW) == [1]
    assert await listed(store, source="nothing") == []
    assert await listed(store, BOB) == [4]
    assert await listed(store, NOBODY) == []


@pytest.mark.parametrize(
    "text",
    ["' OR 1=1 --", "%", "_", '"; DROP TABLE memories; --', ":scope", "\0", "chat:t1\0", "?"],
)
async def test_sql_in_filters_finds_nothing(store: Store, text: str) -> None:
    """Bad input: what is asked for is compared, never run."""
    await store.apply([saved(1, source="chat:t1", thread="t1")])
    assert await listed(store, source=text) == []
    assert await listed(store, thread=text) == []
    assert await store.known(ANN, [text]) == frozenset()
    assert (await store.plan_undo(ANN, text)).undone == ()
    with pytest.raises(NotFound):
        await store.get(ANN, text, NOW)
    assert await listed(store) == [1]


async def test_sorts(store: Store) -> None:
    """M-3: recent, importance (what is left of it), most accessed."""
    await store.apply(
        [
            saved(1, importance=0.5, created_at=T0),
            saved(2, importance=0.8, created_at=T0 - 20 * DAY),
            saved(3, importance=0.3, occurred_at=NOW),
            accessed(4, 1),
            accessed(5, 1, 2),
        ]
    )
    assert await listed(store, sort="recent") == [3, 1, 2]
    assert await listed(store, sort="importance") == [1, 2, 3]
    assert await listed(store, sort="accessed") == [1, 2, 3]


@pytest.mark.parametrize("sort", ["recent", "importance", "accessed"])
@pytest.mark.parametrize("limit", [1, 3, 7, 200])
async def test_pages_hold_everything_once(store: Store, sort: str, limit: int) -> None:
    """M-2: in the order of one long list, ties too."""
    await store.apply(
        [saved(n, importance=n % 3 / 2, created_at=at(n % 4)) for n in range(1, 21)]
        + [accessed(n, *range(1, n - 19)) for n in range(21, 26)]
    )
    everything = await listed(store, sort=sort, limit=200)
    assert sorted(everything) == list(range(1, 21))
    assert await pages(store, sort=sort, limit=limit) == everything


async def test_what_is_saved_meanwhile_moves_nothing(store: Store) -> None:
    """M-2: a page goes on after the last memory of the one before, and by its clock."""
    await store.apply([saved(n, importance=n / 10) for n in range(1, 7)])
    first = await store.list(ANN, ListMemories(limit=3, sort="importance"), NOW)
    await store.apply([saved(7, importance=1.0), forgotten(8, 5)])
    question = ListMemories(limit=3, sort="importance", after=first.next_after or "")
    second = await store.list(ANN, question, NOW + 9 * DAY)
    assert [int(each.id, 16) for each in second.memories] == [3, 2, 1]


@pytest.mark.parametrize(
    "after",
    [
        "x", "é", "AAAA", "====", "bnVsbA", "W10", "a b", "'; --",
        base64.urlsafe_b64encode(b'["importance",1,1.0,1]').decode(),  # of another sort
        base64.urlsafe_b64encode(b'["recent",1,1]').decode(),
        base64.urlsafe_b64encode(b'["recent",1,"x",1]').decode(),
        base64.urlsafe_b64encode(b'["recent",99999999999999999999,1,1]').decode(),
        base64.urlsafe_b64encode(b'["recent",9223372036854775807,1,1]').decode(),
        base64.urlsafe_b64encode(b'["recent",1,99999999999999999999,1]').decode(),
        base64.urlsafe_b64encode(b'["recent",1,1,99999999999999999999]').decode(),
        base64.urlsafe_b64encode(b'["recent",1,1,1,1]').decode(),
    ],
)  # fmt: skip
async def test_a_cursor_that_is_none_is_refused(store: Store, after: str) -> None:
    """X-6: naming the field, also when there is nothing to list."""
    for scope in (ANN, NOBODY):
        with pytest.raises(InvalidInput) as refused:
            await store.list(scope, ListMemories(after=after), NOW)
        assert refused.value.field == "after"
    await store.apply([saved(1)])
    with pytest.raises(InvalidInput):
        await store.list(ANN, ListMemories(after=after), NOW)


async def test_a_page_fits_into_an_answer(store: Store) -> None:
    """What doesn't fit comes on the next page."""
    await store.apply([saved(n, "ü" * (CONTENT_BYTES_MAX // 2)) for n in range(1, 120)])
    page = await store.list(ANN, ListMemories(limit=200), NOW)
    assert 40 < len(page.memories) < 60
    assert len(msgspec.json.encode(page)) < ANSWER_BYTES_MAX + 1000
    assert await pages(store, limit=200) == list(range(119, 0, -1))


async def test_as_of_a_moment(store: Store) -> None:
    """M-4: what had been saved by then and stood then, with the importance that it had then."""
    await store.apply(
        [saved(1), saved(2, occurred_at=T0 - DAY), saved(3), merged(5, 1, 2), saved(8)]
    )
    assert await listed(store, as_of=at(2)) == [1, 2]
    assert await listed(store, as_of=at(4.9)) == [3, 1, 2]
    assert await listed(store, as_of=at(5)) == [5, 3]
    assert await listed(store, as_of=at(0)) == []
    assert await listed(store, as_of=at(4), with_ended=True) == [3, 1, 2]
    late = await store.list(ANN, ListMemories(as_of=at(4)), NOW + 90 * DAY)
    assert late.memories[0].decayed > 0.6


# ---------------------------------------------------------------- decay in SQL


@given(
    st.sampled_from(sorted(IMPORTANCE)),
    st.floats(0, 1),
    st.integers(-40 * DAY_MICROS, 400 * DAY_MICROS),
    st.none() | st.integers(-40 * DAY_MICROS, 400 * DAY_MICROS),
)
def test_decay_in_sql_is_that_of_python(
    kind: str, importance: float, age: int, accessed_ago: int | None
) -> None:
    """M-7: to the last bit, or a list would be sorted otherwise than it says."""
    made = NOW - timedelta(microseconds=age)
    seen = None if accessed_ago is None else NOW - timedelta(microseconds=accessed_ago)
    expected = decide.decayed(importance, kind, made, seen, NOW)  # type: ignore[arg-type]
    assert _in_sql(kind, importance, decide.micros(made), seen and decide.micros(seen)) == expected


def _in_sql(kind: str, importance: float, made: int, seen: int | None) -> float:
    row = {"type": kind, "importance": importance, "made": made, "seen": seen}
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        found: float = db.execute(
            "WITH m (type, importance, created_at, accessed_at) AS"  # noqa: S608
            f" (VALUES (:type, :importance, :made, :seen)) SELECT {views.DECAYED} FROM m",
            row | {"now": decide.micros(NOW)},
        ).fetchone()[0]
    return found


# ---------------------------------------------------------------- graphs


async def test_a_graph_around_a_memory(store: Store) -> None:
    """M-3: by distance, and the strongest association first; only what stands."""
    await store.apply([saved(n) for n in range(1, 8)] + [saved(8, scope=BOB)])
    await store.apply(
        [
            associated(9, edge(1, 2, 0.3), edge(3, 1, 0.9), edge(3, 4), edge(4, 5), edge(5, 6)),
            associated(10, edge(7, 1, 1.0)),
            forgotten(11, 7, reason="decayed"),
        ]
    )
    one = await store.graph(ANN, GetGraph(id=memory_id(1)), NOW)
    assert [int(node.id, 16) for node in one.nodes] == [1, 3, 2]
    assert [(e.from_id, e.to_id) for e in one.edges] == [ids(3, 1), ids(1, 2)]
    three = await store.graph(ANN, GetGraph(id=memory_id(1), depth=3), NOW)
    assert [int(node.id, 16) for node in three.nodes] == [1, 3, 2, 4, 5]
    few = await store.graph(ANN, GetGraph(id=memory_id(1), depth=3, limit=2), NOW)
    assert [int(node.id, 16) for node in few.nodes] == [1, 3]
    assert len(few.edges) == 1
    with pytest.raises(NotFound):
        await store.graph(BOB, GetGraph(id=memory_id(1)), NOW)
    with pytest.raises(NotFound):
        await store.graph(NOBODY, GetGraph(id=memory_id(1)), NOW)


async def test_the_best_connected(store: Store) -> None:
    await store.apply([saved(n) for n in range(1, 6)])
    await store.apply([associated(9, edge(1, 2, 0.3), edge(3, 2, 0.9), edge(3, 4, 0.5))])
    found = await store.graph(ANN, GetGraph(limit=2), NOW)
    assert [int(node.id, 16) for node in found.nodes] == [3, 2]
    assert [(e.from_id, e.to_id) for e in found.edges] == [ids(3, 2)]
    assert (await store.graph(NOBODY, GetGraph(), NOW)).nodes == ()


async def test_a_graph_fits_into_an_answer_with_all_its_edges(store: Store) -> None:
    """The broker takes 1 MiB."""
    numbers = range(1, 201)
    edges = [
        edge(one, other, 0.1234567890123456, relation="contradicts")
        for one in numbers for other in numbers if one < other
    ]  # fmt: skip
    await store.apply([*(saved(n, "x" * 4_000) for n in numbers), associated(201, *edges)])
    for question in (GetGraph(limit=200), GetGraph(id=memory_id(1), depth=3, limit=200)):
        found = await store.graph(ANN, question, NOW)
        assert len(found.nodes) > 150
        assert len(found.edges) > 1_000
        assert len(msgspec.json.encode(found)) < 1024 * 1024 - 4096


# ---------------------------------------------------------------- figures


async def test_stats(store: Store) -> None:
    await store.apply(
        [
            saved(1, source="a"), saved(2, source="a", type="goal"), saved(3, source="b"),
            saved(4, scope=BOB), associated(5, edge(1, 2), edge(2, 3)), forgotten(6, 3),
            saved(7, source="b", expires_at=NOW),
        ]
    )  # fmt: skip
    await store.set_vectors({}, position=6)
    await store.set_meta("embedder", "a model")
    found = await store.stats(ANN, GetStats(), NOW)
    # What was forgotten on request isn't counted; what has expired since is.
    assert (found.memories, found.ended, found.edges) == (2, 1, 1)
    assert found.by_type == {"fact": 1, "goal": 1}
    assert found.by_source == {"a": 2}
    assert (found.position, found.vectors_position, found.embedder) == (7, 6, "a model")
    empty = await store.stats(NOBODY, GetStats(), NOW)
    assert (empty.memories, empty.position) == (0, 7)


async def test_accesses_in_the_future_do_no_harm(store: Store) -> None:
    """M-7: clocks differ; whoever is ahead counts as just now."""
    record = MemoriesAccessed(**(about(2) | {"at": NOW + DAY}), memory_ids=ids(1))
    await store.apply([saved(1, importance=0.5, created_at=NOW + DAY), Entry(2, record)])
    found = await store.list(ANN, ListMemories(sort="importance"), NOW)
    assert found.memories[0].decayed == 0.5 * 1.1


async def test_readers_see_one_moment_while_another_writes(store: Store) -> None:
    """M-9: a read that takes several questions gets one answer."""
    await store.apply([saved(1)])

    def count(db: Any) -> int:
        found: int = db.execute("SELECT count(*) FROM memories").fetchone()[0]
        return found

    async with store.reader() as reader:
        await reader.execute("BEGIN")
        assert await reader.run(count) == 1
        await store.apply([saved(2)])
        assert await reader.run(count) == 1
        await reader.execute("COMMIT")
        assert await reader.run(count) == 2


async def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match="readonly"):
        await store.read(lambda db: db.execute("DELETE FROM memories"))
