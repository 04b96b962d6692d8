"""Making vectors of what is remembered, apart from remembering it.

It works off what changed in SQLite after its own position: embeds what has no vector yet, writes
the vectors to SQLite, hands points to the index, has the index make them last, moves the
position. Each step may be repeated. An embedder or an index that is away holds up nothing else;
it's tried again for good, and after that the index is opened anew, because what came back may be
empty.

Vectors of two embedders are never mixed: with another one, or an index that has to be filled
anew, the index isn't searched until everything is in it (`is_whole`), which recall tells as
degraded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from vigil import crash
from vigil.errors import Unavailable
from vigil.memory.questions import Rebuilding
from vigil.subjects import Scope

from ..config import Limits
from ..embedding import Embedder
from ..numeric import np
from ..store.store import Changed, Store
from ..vectors import Near, Point, VectorIndex, Where

log = structlog.get_logger("vigil.memory")

EMBEDDER: Final = "embedder"
"""In `meta`: what the vectors in SQLite were made with."""
FILLING: Final = "filling"
"""In `meta`: up to which sequence the index is being filled anew; absent: it is whole."""


class Vectorizer:
    """Keeps the index up to date with one store."""

    def __init__(
        self, store: Store, index: VectorIndex, embedder: Embedder, limits: Limits
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._limits = limits
        self._awake = asyncio.Event()
        self._is_open = False
        self._must_fill = False
        self._filling: int | None = None
        """Up to which sequence it is being filled anew."""
        self._done = 0
        self._total = 0
        self.position = 0
        """Everything that changed up to this sequence is in the index, to last."""
        self.problem = ""
        """Why it makes no progress now; empty: it does."""
        self.is_settled = asyncio.Event()
        """Set once all of what was there at the start is in the index, or it can't be reached."""

    @property
    def is_whole(self) -> bool:
        """Whether the index may be searched: it's open, and not being filled anew."""
        return self._is_open and self._filling is None

    @property
    def filling(self) -> Rebuilding | None:
        """How far the index is filled, while that goes on."""
        if self._filling is None:
            return None
        return Rebuilding(what="vectors", done=min(self._done, self._total), total=self._total)

    def wake(self) -> None:
        """Look for what changed."""
        self._awake.set()

    def reopen(self) -> None:
        """Open the index again: a search failed, and what comes back may be empty."""
        self._is_open = False
        self.wake()

    def fill_anew(self) -> None:
        """Make all vectors anew, and the index."""
        self._must_fill = True
        self._is_open = False
        self._filling = self._store.position
        self.wake()

    async def run(self) -> None:
        """Work until cancelled. Raises only what is a fault of ours."""
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            begun_at = loop.time()
            try:
                if not self._is_open:
                    await self._open()
                if not await self._work_off():
                    failures = 0
                    await self._awake.wait()
                    await asyncio.sleep(begun_at + self._limits.vectors_gather_s - loop.time())
            except Unavailable as error:
                self._is_open = False
                is_known, self.problem = self.problem == str(error), str(error)
                self.is_settled.set()
                if not is_known:
                    log.warning("vectors wait", action="memory.vectors_wait", error=self.problem)
                failures += 1
                await asyncio.sleep(self._limits.again.after(failures))

    async def _open(self) -> None:
        """Open the index, and find out from where on it has to be filled."""
        store, embedder = self._store, self._embedder
        if not embedder.dimension:
            await embedder.embed(["dimension"])  # of a model elsewhere: it comes with a vector
        is_wanted = self._must_fill
        must_fill = await self._index.open(embedder.name, embedder.dimension) or is_wanted
        if is_wanted:
            await self._index.drop()
        is_other = await store.meta(EMBEDDER) != embedder.name
        if is_other or must_fill:
            log.info("filling", action="memory.vectors_fill", embedder=embedder.name)
            # In this order, so that after a kill in between it begins anew.
            await store.set_meta(FILLING, str(store.position))
            if is_other or is_wanted:
                await store.drop_vectors()
            await store.set_vectors({}, position=0)
            await store.set_meta(EMBEDDER, embedder.name)
        self.position = store.vectors_position
        filling = await store.meta(FILLING)
        self._filling = int(filling) if filling else None
        if self._filling is not None:
            self._total = await store.count_changed(after=0)
            self._done = self._total - await store.count_changed(after=self.position)
        # Wanted meanwhile: then it's opened once more.
        self._must_fill = self._must_fill and not is_wanted
        self._is_open = not self._must_fill
        self.problem = ""

    async def _work_off(self) -> bool:
        """Bring the index up to date; return whether it was interrupted by `fill_anew`."""
        self._awake.clear()
        batches = 0
        while not self._must_fill:
            seen = self._store.position
            rows = await self._store.changed(self.position, self._limits.vectors_batch)
            if not rows:
                self.position = max(self.position, seen)
                if self.position > self._store.vectors_position:
                    await self._last()
                await self._end_filling()
                self.is_settled.set()
                break
            await self._put(rows)
            batches += 1
            self._done += len(rows)
            self.position = rows[-1].changed_seq
            is_last = len(rows) < self._limits.vectors_batch
            if is_last or batches % self._limits.vectors_flush_every == 0:
                await self._last()
        return self._must_fill

    async def _last(self) -> None:
        """Make what is in the index survive a kill, and remember that it is in."""
        await self._index.flush()
        crash.point("memory.vectors.flushed")
        await self._store.set_vectors({}, position=self.position)

    async def _put(self, rows: Sequence[Changed]) -> None:
        new = [row for row in rows if row.vector is None and not row.is_forgotten]
        made: dict[int, bytes] = {}
        if new:
            vectors = await self._embedder.embed([row.content for row in new])
            made = {row.num: one.tobytes() for row, one in zip(new, vectors, strict=True)}
            await self._store.set_vectors(made)
            crash.point("memory.vectors.embedded")
        await self._index.upsert([self._point(row, made.get(row.num)) for row in rows])
        crash.point("memory.vectors.upserted")

    def _point(self, row: Changed, made: bytes | None) -> Point:
        return Point(
            num=row.num,
            id=row.id,
            scope=row.scope,
            vector=made or row.vector or _blank(self._embedder.dimension),
            source=row.source,
            type=row.type,
            thread=row.thread,
            created_at=row.created_at,
            happened_at=row.happened_at,
            ended_at=row.ended_at,
            is_tainted=row.is_tainted,
        )

    async def _end_filling(self) -> None:
        if self._filling is None:
            return
        await self._store.set_meta(FILLING, "")
        self._filling = None
        log.info("filled", action="memory.vectors_filled", memories=self._done)


def _blank(dimension: int) -> bytes:
    """Of what was forgotten on request: its point is written over, and no search finds it."""
    blank = np.zeros(dimension, dtype="<f4")
    blank[0] = 1.0
    return blank.tobytes()


class Whole:
    """The index for those who search: it can't be searched while it is filled anew."""

    def __init__(self, index: VectorIndex, vectorizer: Vectorizer) -> None:
        self._index = index
        self._vectorizer = vectorizer
        self.name = index.name

    async def open(self, embedder: str, dimension: int) -> bool:
        return await self._index.open(embedder, dimension)

    async def upsert(self, points: Sequence[Point]) -> None:
        await self._index.upsert(points)

    async def flush(self) -> None:
        await self._index.flush()

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        """Return the nearest points. Raises: Unavailable, also while not all of them are in."""
        if not self._vectorizer.is_whole:
            raise Unavailable("the vectors are being made")
        try:
            return await self._index.search(vector, limit, where)
        except Unavailable:
            self._vectorizer.reopen()
            raise

    async def count(self, scope: Scope | None = None) -> int:
        return await self._index.count(scope)

    async def drop(self, scope: Scope | None = None) -> None:
        await self._index.drop(scope)

    async def close(self) -> None:
        await self._index.close()
