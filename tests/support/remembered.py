"""A memory without its service: store, index, embedder and recall, filled by hand."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from services.memory.embedding.wordllama import WordLlamaEmbedder
from services.memory.recall.recall import Recaller
from services.memory.recall.scores import Weights
from services.memory.recall.words import Words
from services.memory.replica.projector import entry_of
from services.memory.store.changes import Changed
from services.memory.store.fold import Entry
from services.memory.store.store import Store
from services.memory.upkeep.passes import Passes
from services.memory.vectors import Point
from services.memory.vectors.edge import EdgeIndex
from tests.support.memory_records import ANN, memory_id, saved
from vigil.contracts import MemoryRecord
from vigil.memory.operations.maintain import Maintained
from vigil.memory.operations.recall import Recall, Recalled
from vigil.subjects import Scope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Still:
    """A clock that stands."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0


class Remembered:
    """A memory without its service: what is saved is in both indexes at once."""

    def __init__(self, store: Store, index: EdgeIndex) -> None:
        self.store = store
        self.index = index
        self.embedder = WordLlamaEmbedder()
        self.words = Words()
        self.shown: list[tuple[Scope, list[str]]] = []
        self._seq = 0

    async def save(self, *contents: str, scope: Scope = ANN, **fields: Any) -> list[str]:
        """Save contents a minute apart; return their ids."""
        entries = [self._entry(content, scope, fields) for content in contents]
        await self.store.apply(entries)
        await self._vectorize()
        return [memory_id(entry.seq) for entry in entries]

    async def apply(self, make: Any, *args: Any, **fields: Any) -> None:
        """Apply any other record."""
        entry: Entry = make(self._seq + 1, *args, **fields)
        await self.append(fields.get("scope", ANN), entry.record)

    async def append(self, scope: Scope, record: MemoryRecord) -> int:
        """Apply a record, as a pass writes it."""
        self._seq += 1
        await self.store.apply([entry_of(self._seq, record, self.words)])
        await self._vectorize()
        return self._seq

    async def maintain(self, now: datetime, scope: Scope = ANN) -> Maintained:
        """Run a pass at a moment."""
        return await self._passes(now).maintain([scope])

    async def associate(self, now: datetime, scope: Scope = ANN) -> Maintained:
        """Run a pass of association at a moment."""
        return await self._passes(now).associate([scope])

    def _passes(self, now: datetime) -> Passes:
        return Passes(self.store, self.index, self.append, Still(now))

    def _entry(self, content: str, scope: Scope, fields: dict[str, Any]) -> Entry:
        self._seq += 1
        happened_at = fields.get("occurred_at") or NOW - timedelta(days=1) + self._seq * MINUTE
        made = saved(self._seq, content, scope=scope, **{"created_at": happened_at, **fields})
        return entry_of(self._seq, made.record, self.words)

    async def _vectorize(self) -> None:
        rows = await self.store.changed(self.store.vectors_position, 100_000)
        vectors = await self.embedder.embed([row.content for row in rows])
        made = {row.num: one.tobytes() for row, one in zip(rows, vectors, strict=True)}
        await self.store.set_vectors(made, position=self.store.position)
        await self.index.upsert([_point(row, made[row.num]) for row in rows])

    def recaller(self, **parts: Any) -> Recaller:
        index, embedder = parts.get("index", self.index), parts.get("embedder", self.embedder)
        return Recaller(self.store, index, embedder, self.words, Weights(), self._note)

    def _note(self, scope: Scope, ids: Iterable[str]) -> None:
        self.shown.append((scope, list(ids)))

    async def recall(
        self, query: str, scope: Scope = ANN, *, now: datetime = NOW, **fields: Any
    ) -> Recalled:
        return await self.recaller().recall(scope, Recall(query=query, **fields), now)

    async def found(self, query: str, scope: Scope = ANN, **fields: Any) -> list[str]:
        recalled = await self.recall(query, scope, **fields)
        return [hit.memory.content for hit in recalled.hits]


def _point(row: Changed, vector: bytes) -> Point:
    return Point(
        num=row.num,
        id=row.id,
        scope=row.scope,
        vector=vector,
        source=row.source,
        type=row.type,
        thread=row.thread,
        created_at=row.created_at,
        happened_at=row.happened_at,
        ended_at=row.ended_at,
        is_tainted=row.is_tainted,
    )


@contextlib.asynccontextmanager
async def remembered(folder: Path) -> AsyncIterator[Remembered]:
    """Open an empty memory in a folder."""
    store = await Store.open(folder / "store")
    index = EdgeIndex(folder / "vectors")
    found = Remembered(store, index)
    await index.open(found.embedder.name, found.embedder.dimension)
    yield found
    await index.close()
    await store.close()
