"""Association and maintenance over real rows and the real engine (SPEC M-5, M-6, M-7).

What a pass writes is folded at once, as the projector would.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from services.memory.rules import decide
from services.memory.store.fold import Entry
from services.memory.store.store import Store
from services.memory.upkeep import passes
from services.memory.upkeep.passes import Passes
from services.memory.vectors import Near, Point, VectorIndex, Where
from services.memory.vectors.edge import EdgeIndex
from tests.support.memory_records import (
    ANN,
    BOB,
    DAY,
    T0,
    accessed,
    associated,
    dump,
    edge,
    forgotten,
    ids,
    memory_id,
    merged,
    saved,
    undone,
)
from vigil.contracts import (
    MemoriesAssociated,
    MemoriesMerged,
    MemoryForgotten,
    MemoryRecord,
    decode_memory,
    encode,
)
from vigil.errors import Unavailable
from vigil.memory.operations.list import ListMemories
from vigil.subjects import Scope

DIMENSION = 8
NOW = T0 + 60 * DAY


class _Clock:
    def __init__(self) -> None:
        self.time = NOW
        self.elapsed = 0.0
        self.per_look = 0.0
        """How much of `elapsed` each look at the clock takes."""

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        self.elapsed += self.per_look
        return self.elapsed


class World:
    """A store, an index of it, the passes, and the log that they write."""

    def __init__(self, store: Store, index: VectorIndex) -> None:
        self.store = store
        self.index = index
        self.clock = _Clock()
        self.passes = Passes(store, index, self.append, self.clock)
        self.written: list[MemoryRecord] = []
        self.scopes: list[Scope] = []

    async def append(self, scope: Scope, record: MemoryRecord) -> int:
        assert Scope(record.agent, record.owner) == scope
        self.written.append(decode_memory(encode(record)))
        self.scopes.append(scope)
        seq = self.store.position + 1
        await self.store.apply([Entry(seq, record, "terms")])
        return seq

    async def apply(self, *entries: Entry) -> None:
        await self.store.apply(entries)

    async def index_all(self, vectors: dict[int, Sequence[float]]) -> None:
        """Give memories their vectors, as the vectorizer would."""
        made = {num: _unit(vector) for num, vector in vectors.items()}
        await self.store.set_vectors(made)
        rows = await self.store.changed(self.store.vectors_position, 10_000)
        blank = _unit([0] * DIMENSION)
        points = [
            Point(
                num=row.num, id=row.id, scope=row.scope, vector=row.vector or blank,
                source=row.source, type=row.type, thread=row.thread, created_at=row.created_at,
                happened_at=row.happened_at, ended_at=row.ended_at, is_tainted=row.is_tainted,
            )
            for row in rows
        ]  # fmt: skip
        await self.index.upsert(points)
        await self.store.set_vectors({}, position=self.store.position)

    async def edges(self) -> list[tuple[int, int, str, float]]:
        return sorted(
            (from_num, to_num, relation, round(weight, 3))
            for _, from_num, to_num, relation, weight in (await dump(self.store))["edges"]
        )

    async def standing(self, scope: Scope = ANN) -> list[str]:
        found = await self.store.list(scope, ListMemories(limit=200), self.clock.time)
        return sorted(each.id for each in found.memories)


def _unit(numbers: Sequence[float]) -> bytes:
    vector = np.zeros(DIMENSION, dtype="<f4")
    vector[: len(numbers)] = numbers
    return (vector / (np.linalg.norm(vector) or 1)).astype("<f4").tobytes()


def towards(cosine: float, axis: int = 1) -> list[float]:
    """A vector of that cosine with the first axis."""
    vector = [cosine] + [0.0] * (DIMENSION - 1)
    vector[axis] = float(np.sqrt(1 - cosine * cosine))
    return vector


class _Away:
    """An index that can't be reached."""

    name = "edge"

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        raise Unavailable("away")


@pytest.fixture
async def tended(tmp_path: Path) -> AsyncIterator[World]:
    """A world for maintenance, which needs no index."""
    store = await Store.open(tmp_path / "0")
    yield World(store, cast(VectorIndex, _Away()))
    await store.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store, index = await Store.open(tmp_path / "0"), EdgeIndex(tmp_path / "vectors")
    await index.open("tests-8", DIMENSION)
    yield World(store, index)
    await index.close()
    await store.close()


# ---------------------------------------------------------------- association


async def test_what_is_near_is_associated(world: World) -> None:
    """M-5: from the newer to the older, by cosine, and never with another owner's."""
    await world.apply(saved(1), saved(2), saved(3), saved(4), saved(5, scope=BOB))
    await world.index_all(
        {1: [1.0], 2: towards(0.9), 3: towards(0.97, 2), 4: towards(0.5, 3), 5: [1.0]}
    )
    found = await world.passes.associate([ANN, BOB])
    assert found.associated == 3
    assert found.message == "3 associations made."
    assert await world.edges() == [
        (2, 1, "related_to", 0.667),
        (3, 1, "updates", 0.9),
        (3, 2, "related_to", 0.577),
    ]
    assert all(isinstance(record, MemoriesAssociated) for record in world.written)
    assert [record.by for record in world.written] == ["maintenance", "maintenance"]


async def test_a_pass_that_finds_nothing_new_writes_nothing(world: World) -> None:
    """M-5: only new memories are looked at, and again only if they weren't."""
    await world.apply(saved(1), saved(2))
    await world.index_all({1: [1.0], 2: [1.0]})
    await world.passes.associate([ANN])
    before = len(world.written)
    found = await world.passes.associate([ANN, Scope("vigil", "nobody")])
    assert found.message == "0 associations made."
    assert len(world.written) == before
    # A new one finds the old ones; an edge by hand between them stays.
    await world.apply(saved(10), saved(11), associated(12, edge(10, 1, 0.1, relation="updates")))
    await world.index_all({10: [1.0], 11: [0, 1.0]})
    assert (await world.passes.associate([ANN])).associated == 1
    assert await world.edges() == [
        (2, 1, "updates", 1.0), (10, 1, "updates", 0.1), (10, 2, "updates", 1.0),
    ]  # fmt: skip


async def test_nothing_is_skipped_for_good(world: World) -> None:
    """M-5: 100 edges a pass, until every pair near enough is associated."""
    count = 40
    await world.apply(*(saved(n) for n in range(1, count + 1)))
    await world.index_all({n: towards(0.999 - n / 10_000) for n in range(1, count + 1)})
    passes_made, has_more = 0, True
    while has_more:
        found = await world.passes.associate([ANN])
        assert found.associated <= decide.EDGES_PER_PASS
        passes_made, has_more = passes_made + 1, found.has_more
    assert passes_made > 2
    assert (await world.passes.associate([ANN])).associated == 0
    nearest = await _nearest_pairs(world, count)
    assert {frozenset(each[:2]) for each in await world.edges()} == nearest


async def _nearest_pairs(world: World, count: int) -> set[frozenset[int]]:
    """Each with its ten nearest, of which all are above the threshold."""
    pairs = set()
    for num in range(1, count + 1):
        vector = _unit(towards(0.999 - num / 10_000))
        near = await world.index.search(vector, decide.NEAREST + 1, Where(scope=ANN))
        others = [hit.num for hit in near if hit.num != num]
        pairs |= {frozenset((num, other)) for other in others[: decide.NEAREST]}
    return pairs


async def test_what_the_index_does_not_hold_yet_waits(world: World) -> None:
    """M-5: the cursor stays before what has no vector."""
    await world.apply(saved(1), saved(2))
    await world.index_all({1: [1.0], 2: [1.0]})
    await world.apply(saved(3))
    assert (await world.passes.associate([ANN])).associated == 1
    assert (await world.passes.associate([ANN])).associated == 0
    await world.index_all({3: [1.0]})
    assert (await world.passes.associate([ANN])).associated == 2


async def test_what_has_ended_or_says_nothing_gets_no_edges(world: World) -> None:
    """M-5: nor what the index still finds, but SQLite knows to be gone."""
    await world.apply(saved(1), saved(2), saved(3), saved(4), saved(5, expires_at=NOW))
    await world.index_all({1: [1.0], 2: [1.0], 3: [0.0], 4: [1.0], 5: [1.0]})
    await world.apply(forgotten(9, 1))
    assert (await world.passes.associate([ANN])).associated == 1
    assert await world.edges() == [(4, 2, "updates", 1.0)]


async def test_an_index_that_is_away_skips_nothing(world: World) -> None:
    """M-5: the next pass looks at all of it."""
    await world.apply(saved(1), saved(2))
    await world.index_all({1: [1.0], 2: [1.0]})
    away = Passes(world.store, cast(VectorIndex, _Away()), world.append, world.clock)
    with pytest.raises(Unavailable):
        await away.associate([ANN])
    assert world.written == []
    assert (await world.passes.associate([ANN])).associated == 1


async def test_a_pass_without_time_goes_on_where_it_ended(world: World) -> None:
    """M-5: no owner waits for good behind busy ones."""
    owners = [Scope("vigil", f"owner-{n}") for n in range(4)]
    for n, owner in enumerate(owners):
        await world.apply(saved(2 * n + 1, scope=owner), saved(2 * n + 2, scope=owner))
    await world.index_all({n: [1.0] for n in range(1, 9)})
    world.clock.per_look = passes.ASSOCIATION_S / 4
    while len(world.written) < 4:
        before = len(world.written)
        found = await world.passes.associate(owners)
        assert len(world.written) > before
        assert found.has_more or len(world.written) == 4
    assert world.scopes == owners


async def test_the_same_pass_twice_writes_the_same_ids(world: World) -> None:
    """So the broker drops what two replicas write at once; and the fold would, too."""
    await world.apply(saved(1), saved(2), *_notes(3, 4))
    await world.index_all({n: [1.0] for n in range(1, 6)})
    seen: list[MemoryRecord] = []

    async def only_note(scope: Scope, record: MemoryRecord) -> int:
        seen.append(record)
        return 0

    for _ in range(2):
        other = Passes(world.store, world.index, only_note, world.clock)
        await other.associate([ANN])
        await other.maintain([ANN])
    assert len(seen) == 4
    assert [record.id for record in seen[:2]] == [record.id for record in seen[2:]]


# ---------------------------------------------------------------- maintenance


def _notes(first: int, count: int, **fields: Any) -> list[Entry]:
    given = {"stability": "volatile", "created_at": NOW - 8 * DAY} | fields
    return [saved(n, **given) for n in range(first, first + count)]


async def test_expired_and_faded_memories_go(tended: World) -> None:
    """M-6, M-7: two records, each of what it is about; what was accessed lately stays."""
    observation: dict[str, Any] = {"type": "observation", "importance": 0.3}
    await tended.apply(
        saved(1, **observation),
        saved(2, **observation),
        saved(3, expires_at=NOW),
        saved(4, expires_at=NOW + timedelta(seconds=1)),
        saved(5, **observation, created_at=NOW - 29 * DAY),
        saved(6, type="identity", importance=0.01),
        saved(7, expires_at=NOW - DAY, scope=BOB),
    )
    record = accessed(8, 2).record
    await tended.apply(Entry(8, type(record)(**_about(record, NOW - DAY), memory_ids=ids(2))))  # type: ignore[call-arg]
    found = await tended.passes.maintain([ANN, BOB])
    assert (found.pruned, found.merged) == (3, 0)
    assert found.message == "3 memories pruned, 0 batches of notes merged into summaries."
    assert await tended.standing() == list(ids(2, 4, 5, 6))
    assert await tended.standing(BOB) == []
    records = [record for record in tended.written if isinstance(record, MemoryForgotten)]
    assert [(r.reason, r.memory_ids) for r in records] == [
        ("expired", ids(3)), ("decayed", ids(1)), ("expired", ids(7)),
    ]  # fmt: skip


def _about(record: MemoryRecord, at: datetime) -> dict[str, Any]:
    return {"id": record.id, "agent": record.agent, "owner": record.owner, "at": at, "by": "x"}


async def test_old_notes_are_merged(tended: World) -> None:
    """M-6: in batches of five, of one owner, and `merged` counts batches."""
    await tended.apply(*_notes(1, 8), *_notes(11, 2, scope=BOB), *_notes(21, 4, scope=BOB))
    await tended.apply(saved(30, stability="volatile", created_at=NOW - 6 * DAY))
    found = await tended.passes.maintain([ANN, BOB])
    assert (found.pruned, found.merged) == (0, 3)
    merges = [record for record in tended.written if isinstance(record, MemoriesMerged)]
    assert [len(record.merged_ids) for record in merges] == [5, 3, 5]
    assert [record.owner for record in merges] == ["ann", "ann", "bob"]
    assert len(await tended.standing()) == 3
    assert len(await tended.standing(BOB)) == 2
    member = (await tended.store.get(ANN, memory_id(1), NOW)).memory
    assert member.superseded_by == merges[0].memory.id
    summary = (await tended.store.get(ANN, merges[0].memory.id, NOW)).memory
    assert (summary.stability, summary.type, summary.created_at) == ("stable", "summary", NOW)
    assert summary.content.startswith("2026-02-22: memory 1\n")


async def test_maintenance_again_changes_nothing(tended: World) -> None:
    """M-6, M-7: and says so."""
    await tended.apply(*_notes(1, 7), saved(8, expires_at=NOW))
    await tended.passes.maintain([ANN])
    before, rows = len(tended.written), await dump(tended.store)
    found = await tended.passes.maintain([ANN, Scope("vigil", "nobody")])
    assert (found.pruned, found.merged) == (0, 0)
    assert found.message == "There was nothing to prune or to merge."
    assert len(tended.written) == before
    assert await dump(tended.store) == rows


async def test_a_merge_that_was_undone_is_not_made_again(tended: World) -> None:
    """M-4, M-6: or it would come back every six hours, void each time."""
    await tended.apply(*_notes(1, 5))
    await tended.passes.maintain([ANN])
    summary = int((await tended.standing())[0], 16)
    await tended.apply(undone(20, summary))
    assert await tended.standing() == list(ids(1, 2, 3, 4, 5))
    assert (await tended.passes.maintain([ANN])).merged == 0


async def test_what_has_expired_is_not_merged(tended: World) -> None:
    """M-6: nor what is pruned in the same pass, whose record isn't folded yet."""
    observation: dict[str, Any] = {"type": "observation", "importance": 0.3, "created_at": T0}
    await tended.apply(*_notes(1, 2), *_notes(3, 3, expires_at=NOW), *_notes(6, 3, **observation))
    planned: list[MemoryRecord] = []

    async def later(scope: Scope, record: MemoryRecord) -> int:
        planned.append(record)
        return 0

    found = await Passes(tended.store, tended.index, later, tended.clock).maintain([ANN])
    assert (found.pruned, found.merged) == (6, 0)
    assert [type(record) for record in planned] == [MemoryForgotten, MemoryForgotten]


async def test_many_expire_at_once(tended: World) -> None:
    """A record names 1,000 at most."""
    await tended.apply(*(saved(n, expires_at=NOW) for n in range(1, 2502)))
    assert (await tended.passes.maintain([ANN])).pruned == 2501
    sizes = [len(record.memory_ids) for record in tended.written]  # type: ignore[union-attr]
    assert sizes == [1000, 1000, 501]


async def test_a_race_between_two_replicas_merges_once(tended: World) -> None:
    """M-6: both plan on the same rows; the fold takes the first."""
    await tended.apply(*_notes(1, 5))
    planned: list[MemoryRecord] = []

    async def later(scope: Scope, record: MemoryRecord) -> int:
        planned.append(record)
        return 0

    await Passes(tended.store, tended.index, later, tended.clock).maintain([ANN])
    await tended.passes.maintain([ANN])
    before = await dump(tended.store)
    seq = tended.store.position + 1
    await tended.apply(Entry(seq, planned[0], "terms"), merged(seq + 1, 1, 2, 3))
    after = await dump(tended.store)
    assert before | {"meta": []} == after | {"meta": []}
