"""One contract for every vector index: the engine in a process of its own, and a Qdrant server.

The server is a real one in a container where Docker runs. Without Docker its backend still goes
over HTTP to a small server with the client's own engine (`tests/support/qdrant.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from services.memory.vectors import Near, VectorIndex, Where
from services.memory.vectors.edge import EdgeIndex
from services.memory.vectors.filters import INDEXES
from services.memory.vectors.server import COLLECTION, ServerIndex
from tests.support.qdrant import KEY, Qdrant, running_qdrant
from tests.support.vectors import (
    ANN,
    BOB,
    DIMENSION,
    OWN,
    found,
    memory_id,
    point,
    similarity,
    vector,
)
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import Scope

pytestmark = pytest.mark.asyncio(loop_scope="module")

QDRANT_IMAGE = "qdrant/qdrant:v1.19.1"
EMBEDDER = "tests-16"
PATIENT_S = 300.0
ODD = (
    "Zoë’s 猫 😀", "' OR 1=1 --", '{"must": []}', "a.b[].c", "*", "vigil.bob", "nul\0byte",
    "\u202e", " ",
)  # fmt: skip

Clean = Callable[[], Awaitable[object]]
Make = Callable[[], VectorIndex]
"""Another index on the same storage, as after a restart; the one before has been closed."""


@pytest.fixture(scope="session")
def qdrant_container() -> Iterator[str]:
    docker = pytest.importorskip("docker")
    from testcontainers.community.qdrant import QdrantContainer

    try:
        container = QdrantContainer(QDRANT_IMAGE)
        container.start()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker here: {error}")
    try:
        yield f"http://{container.rest_host_address}"
    finally:
        container.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def qdrant_http() -> AsyncIterator[tuple[Qdrant, str]]:
    async with running_qdrant() as running:
        yield running


@pytest.fixture(
    params=["edge", "qdrant-http", pytest.param("qdrant-server", marks=pytest.mark.docker)]
)
def server(request: pytest.FixtureRequest) -> tuple[str, str | None, Clean]:
    """The URL of a server, its key, and what empties it; without a URL the engine."""
    if request.param == "qdrant-http":
        qdrant, url = request.getfixturevalue("qdrant_http")
        return url, KEY, partial(qdrant.forget, COLLECTION)
    if request.param == "qdrant-server":
        url = request.getfixturevalue("qdrant_container")
        return url, None, partial(_clean, url)
    return "", None, partial(asyncio.sleep, 0)


async def _clean(url: str) -> None:
    index = ServerIndex(url, None)
    await index.open("clean", 1)
    await index.close()


@pytest_asyncio.fixture(loop_scope="module")
async def make(server: tuple[str, str | None, Clean], tmp_path: Path) -> AsyncIterator[Make]:
    url, key, clean = server
    async with contextlib.AsyncExitStack() as stack:
        await clean()

        def make() -> VectorIndex:
            # How long one waits is what `test_vectors_server.py` is about; here many ask at once.
            index: VectorIndex = (
                ServerIndex(url, key, search_s_max=PATIENT_S, write_s_max=PATIENT_S)
                if url
                else EdgeIndex(tmp_path / "edge")
            )
            stack.push_async_callback(index.close)
            return index

        yield make


@pytest_asyncio.fixture(loop_scope="module")
async def index(make: Make) -> VectorIndex:
    index = make()
    assert await index.open(EMBEDDER, DIMENSION)
    return index


async def test_the_nearest_come_first_and_the_similarity_is_the_cosine(index: VectorIndex) -> None:
    """SPEC M-3."""
    await index.upsert([point(n) for n in range(50)])
    hits = await index.search(vector(7), 10, Where(scope=ANN))
    own = np.frombuffer(vector(7), "<f4")
    cosines = {memory_id(n): float(own @ np.frombuffer(vector(n), "<f4")) for n in range(50)}
    best = sorted(cosines, key=lambda one: -cosines[one])[:10]
    assert [memory_id(hit.num % OWN) for hit in hits] == best
    assert similarity(hits) == pytest.approx([cosines[one] for one in best], abs=1e-5)
    assert similarity(hits)[0] == pytest.approx(1.0, abs=1e-5)


async def test_what_was_stored_is_found_at_once(index: VectorIndex) -> None:
    """SPEC M-2: recallable when the save is acknowledged."""
    for number in range(20):
        await index.upsert([point(number)])
        assert (await found(index, limit=1, near=number)) == [number]


async def test_the_same_id_again_replaces_it(index: VectorIndex) -> None:
    await index.upsert([point(1, source="before")])
    await index.upsert([point(1, source="after", vector=vector(99))])
    assert await index.count() == 1
    assert await found(index, sources=("before",)) == []
    assert await found(index, sources=("after",)) == [1]
    hits = await index.search(vector(99), 1, Where(scope=ANN))
    assert similarity(hits) == pytest.approx([1.0], abs=1e-5)


async def test_more_points_than_one_request_takes(index: VectorIndex) -> None:
    await index.upsert([point(n) for n in range(300)])
    assert await index.count(ANN) == 300
    assert len(await found(index, limit=300)) == 300


async def test_an_owner_finds_only_their_own(index: VectorIndex) -> None:
    """SPEC M-2, RELIABILITY S13: the same id and vector, whoever asks, whatever they filter by."""
    scopes = [ANN, BOB, Scope("other", "ann"), Scope("vigil", "team"), Scope("ann", "vigil")]
    for number, scope in enumerate(scopes):
        same = {"id": memory_id(1), "vector": vector(1)}
        await index.upsert([point(1, scope=scope, source=f"of-{number}", **same)])
        await index.upsert([point(10 + number, scope=scope, ended_at=50.0)])
    assert await index.count() == 2 * len(scopes)
    for number, scope in enumerate(scopes):
        mine = [1, 10 + number]
        assert await found(index, scope=scope) == [1]
        assert await found(index, scope=scope, sources=(f"of-{number}",)) == [1]
        assert await found(index, scope=scope, as_of=40.0) == mine
        for other in range(len(scopes)):
            if other != number:
                assert await found(index, scope=scope, sources=(f"of-{other}",)) == []
        assert await index.count(scope) == 2
    assert await found(index, scope=Scope("nobody", "ann")) == []


async def test_a_scope_that_is_none_is_refused(index: VectorIndex) -> None:
    """RELIABILITY S13: `a.b` of `c` must not be `a` of `b.c`."""
    for scope in (Scope("vigil.ann", "x"), Scope("", "ann"), Scope("vigil", "*")):
        with pytest.raises(InvalidInput):
            await found(index, scope=scope)
        with pytest.raises(InvalidInput):
            await index.upsert([point(1, scope=scope)])
        with pytest.raises(InvalidInput):
            await index.drop(scope)
        with pytest.raises(InvalidInput):
            await index.count(scope)


async def test_filters_hold_inside_the_search(index: VectorIndex) -> None:
    """SPEC M-3."""
    await index.upsert(
        [
            point(1, source="chat:a", thread="a"),
            point(2, source="chat:a", thread="a", type="event"),
            point(3, source="chat:b", thread="b", type="goal", is_tainted=True),
            point(4, source="api", type="event", happened_at=1000.5),
        ]
    )
    assert sorted(await found(index)) == [1, 2, 3, 4]
    assert sorted(await found(index, sources=("chat:a",))) == [1, 2]
    assert await found(index, sources=("chat",)) == []
    assert sorted(await found(index, types=("event", "goal"))) == [2, 3, 4]
    assert await found(index, types=("todo",)) == []
    assert sorted(await found(index, thread="a")) == [1, 2]
    assert sorted(await found(index, only_trusted=True)) == [1, 2, 4]
    assert sorted(await found(index, since=2.0)) == [2, 3, 4]
    assert sorted(await found(index, until=2.0)) == [1, 2]
    assert sorted(await found(index, since=2.0, until=3.0)) == [2, 3]
    assert await found(index, since=1000.5, until=1000.5) == [4]
    assert await found(index, since=1000.6) == []
    assert await found(index, sources=("chat:a",), types=("event",), thread="a", since=0.0) == [2]
    assert await found(index, sources=("chat:a",), only_trusted=True, until=1.0) == [1]


async def test_what_ended_is_found_as_of_then(index: VectorIndex) -> None:
    """SPEC M-4: what stood at that moment, whatever became of it."""
    await index.upsert([point(10), point(20, ended_at=30.0), point(40)])
    assert sorted(await found(index)) == [10, 40]
    assert await found(index, as_of=9.9) == []
    assert await found(index, as_of=10.0) == [10]
    assert sorted(await found(index, as_of=29.9)) == [10, 20]
    assert await found(index, as_of=30.0) == [10]
    assert sorted(await found(index, as_of=40.0)) == [10, 40]
    await index.upsert([point(10, ended_at=50.0)])
    assert await found(index) == [40]
    assert sorted(await found(index, with_pruned=True)) == [10, 20, 40]


async def test_a_rare_source_gets_its_results(index: VectorIndex) -> None:
    """SPEC M-3: filtered inside the index; after it, a limit of 10 would find none of them."""
    await index.upsert([point(n, source="rare" if n % 20 == 0 else "chat") for n in range(200)])
    rare = await found(index, limit=10, near=7, sources=("rare",))
    assert sorted(rare) == list(range(0, 200, 20))


async def test_any_text_is_only_a_value(index: VectorIndex) -> None:
    """RELIABILITY S13, S14: no syntax, path or wildcard in a source or thread means anything."""
    for number, odd in enumerate(ODD):
        await index.upsert([point(number, source=odd, thread=odd)])
    await index.upsert([point(100, scope=BOB, source=ODD[0])])
    for number, odd in enumerate(ODD):
        assert await found(index, sources=(odd,)) == [number]
        assert await found(index, thread=odd) == [number]
        assert await found(index, sources=(odd,), thread="*" if odd != "*" else "**") == []


async def test_nothing_is_near_to_a_text_without_known_words(index: VectorIndex) -> None:
    await index.upsert([point(1), point(2, vector=bytes(4 * DIMENSION))])
    assert await index.search(bytes(4 * DIMENSION), 10, Where(scope=ANN)) == []
    hits = await index.search(vector(1), 10, Where(scope=ANN))
    assert hits[0].num == point(1).num
    assert similarity(hits) == pytest.approx([1.0, 0.0], abs=1e-5)


async def test_a_dropped_scope_is_gone_and_others_stay(index: VectorIndex) -> None:
    """SPEC X-8."""
    await index.upsert([point(n, scope=scope) for n in range(100) for scope in (ANN, BOB)])
    await index.drop(ANN)
    assert (await index.count(ANN), await index.count(BOB)) == (0, 100)
    assert await found(index) == []
    assert len(await found(index, scope=BOB, limit=400)) == 100
    assert await found(index, scope=BOB, near=5, limit=1) == [5]
    await index.drop(ANN)  # again: nothing happens
    await index.upsert([point(1)])
    assert await found(index) == [1]


async def test_everything_can_be_dropped(index: VectorIndex) -> None:
    await index.upsert([point(n, scope=scope) for n in range(10) for scope in (ANN, BOB)])
    await index.flush()
    await index.drop()
    assert await index.count() == 0
    await index.upsert([point(1)])
    assert await found(index) == [1]


async def test_it_is_there_after_a_restart(make: Make) -> None:
    """SPEC M-9: and need not be filled anew."""
    first = make()
    assert await first.open(EMBEDDER, DIMENSION)
    await first.upsert([point(1, source="x"), point(2)])
    await first.flush()
    await first.close()
    second = make()
    assert not await second.open(EMBEDDER, DIMENSION)
    assert await second.count() == 2
    assert await found(second, sources=("x",)) == [1]


async def test_it_has_to_be_filled_until_something_was_flushed(make: Make) -> None:
    """SPEC X-5: who is to fill it may be killed before they know."""
    first = make()
    assert await first.open(EMBEDDER, DIMENSION)
    assert await first.open(EMBEDDER, DIMENSION)
    await first.upsert([point(1)])
    await first.close()
    second = make()
    assert await second.open(EMBEDDER, DIMENSION)
    await second.upsert([point(1)])
    await second.flush()
    assert not await second.open(EMBEDDER, DIMENSION)
    assert await second.count() == 1


@pytest.mark.parametrize(("embedder", "dimension"), [("other-16", 16), (EMBEDDER, 8)])
async def test_another_embedder_drops_everything(make: Make, embedder: str, dimension: int) -> None:
    """Vectors of two spaces are never mixed."""
    first = make()
    await first.open(EMBEDDER, DIMENSION)
    await first.upsert([point(1)])
    await first.flush()
    assert await first.open(embedder, dimension)
    assert await first.count() == 0
    await first.upsert([point(2, vector=vector(2, dimension))])
    hits = await first.search(vector(2, dimension), 10, Where(scope=ANN))
    assert [hit.num for hit in hits] == [point(2).num]
    await first.flush()
    await first.close()
    second = make()
    assert not await second.open(embedder, dimension)
    assert await second.open(EMBEDDER, DIMENSION)


async def test_before_it_is_open_it_is_unavailable(make: Make) -> None:
    index = make()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: index.upsert([point(1)]),
        index.flush,
        index.count,
        index.drop,
        lambda: index.search(vector(1), 10, Where(scope=ANN)),
    ]
    for call in calls:
        with pytest.raises(Unavailable):
            await call()
    await index.close()


async def test_a_vector_of_another_length_is_a_failure_and_no_more(index: VectorIndex) -> None:
    with pytest.raises(Unavailable):
        await index.upsert([point(1, vector=vector(1, 8))])
    with pytest.raises(Unavailable):
        await index.search(vector(1, 8), 10, Where(scope=ANN))
    await index.open(EMBEDDER, DIMENSION)
    await index.upsert([point(2)])
    assert await found(index) == [2]


async def test_searches_and_writes_at_once(index: VectorIndex) -> None:
    """Any number of searches, each right; a cancelled one leaves the others alone."""
    await index.upsert([point(n) for n in range(40)])

    async def search(near: int) -> list[Near]:
        return await index.search(vector(near), 1, Where(scope=ANN))

    given_up = [asyncio.create_task(search(n)) for n in range(10)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    writing = asyncio.create_task(index.upsert([point(n, scope=BOB) for n in range(80)]))
    hits = await asyncio.gather(*(search(n) for n in range(40)))
    assert [one.num % OWN for (one,) in hits] == list(range(40))
    await writing
    assert await index.count(BOB) == 80
    await asyncio.gather(*given_up, return_exceptions=True)


@pytest.mark.docker
async def test_the_server_has_its_payload_indexes(qdrant_container: str) -> None:
    from qdrant_client import AsyncQdrantClient

    index = ServerIndex(qdrant_container)
    await index.open(EMBEDDER, DIMENSION)
    await index.close()
    client = AsyncQdrantClient(url=qdrant_container)
    schema = (await client.get_collection(COLLECTION)).payload_schema
    assert {field: one.data_type for field, one in schema.items()} == INDEXES
    await client.close()
