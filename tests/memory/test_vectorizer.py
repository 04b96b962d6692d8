"""The index keeps up with SQLite, and is filled again after it was lost (SPEC M-9)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from services.memory.config import Limits
from services.memory.embedding.wordllama import WordLlamaEmbedder
from services.memory.replica.vectorizer import Vectorizer, Whole
from services.memory.store.store import Entry, Store
from services.memory.vectors import Where
from services.memory.vectors.edge import EdgeIndex
from tests.support import engines
from tests.support.memory_records import ANN, T0, saved
from vigil.contracts import MemoriesAccessed
from vigil.errors import Unavailable


@contextlib.asynccontextmanager
async def _running(
    folder: Path, limits: Limits
) -> AsyncIterator[tuple[Store, Vectorizer, Whole, WordLlamaEmbedder]]:
    store, embedder = await Store.open(folder / "0"), WordLlamaEmbedder()
    edge = EdgeIndex(folder / "vectors")
    vectorizer = Vectorizer(store, edge, embedder, limits)
    running = asyncio.create_task(vectorizer.run())
    try:
        yield store, vectorizer, Whole(edge, vectorizer), embedder
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await edge.close()
        await store.close()


async def test_a_search_that_fails_has_the_index_filled_again(tmp_path: Path) -> None:
    """SPEC M-9: the engine is killed and its files are gone; no save has to come along."""
    async with _running(tmp_path, Limits()) as (store, vectorizer, index, embedder):
        await store.apply([saved(n) for n in range(1, 6)])
        vectorizer.wake()
        (asked,) = await embedder.embed(["memory 1"])
        assert await _searched(index, asked.tobytes()) == 5
        (engine,) = engines.running(tmp_path / "vectors")
        shutil.rmtree(tmp_path / "vectors")
        engine.kill()
        assert await _searched(index, asked.tobytes()) == 5


async def test_the_position_gets_to_the_end_whatever_the_last_batch_holds(tmp_path: Path) -> None:
    """A whole batch at the end, and a record without vectors: both are told to be in."""
    limits = Limits(vectors_batch=5)
    async with _running(tmp_path, limits) as (store, vectorizer, _, _):
        for last in (5, 15):
            await store.apply([saved(n) for n in range(store.position + 1, last + 1)])
            vectorizer.wake()
            await _at(store, last)
        accessed = MemoriesAccessed(
            id="a", agent=ANN.agent, owner=ANN.owner, at=T0, by="memory", memory_ids=(),
        )  # fmt: skip
        await store.apply([Entry(seq=16, record=accessed)])
        vectorizer.wake()
        await _at(store, 16)


async def test_what_is_wanted_while_it_opens_is_done(tmp_path: Path) -> None:
    """SPEC M-9: a rebuild asked for in the middle of opening isn't forgotten."""
    async with _running(tmp_path, Limits()) as (store, vectorizer, _, _):
        await store.apply([saved(n) for n in range(1, 6)])
        vectorizer.wake()
        await _at(store, 5)
        asked = 0
        meta = store.meta

        async def asking(key: str) -> str | None:
            nonlocal asked
            found = await meta(key)
            if key == "filling" and asked < 2:
                asked += 1
                vectorizer.fill_anew()
            return found

        store.meta = asking  # type: ignore[method-assign]
        vectorizer.reopen()
        async with asyncio.timeout(30):
            while asked < 2 or vectorizer.filling is not None or not vectorizer.is_whole:
                await asyncio.sleep(0.01)
        await _at(store, 5)


async def _at(store: Store, position: int) -> None:
    async with asyncio.timeout(30):
        while store.vectors_position < position:
            await asyncio.sleep(0.01)


async def _searched(index: Whole, vector: bytes) -> int:
    """How many memories a search finds, once it can find any."""
    async with asyncio.timeout(30):
        while True:
            try:
                return len(await index.search(vector, 10, Where(scope=ANN)))
            except Unavailable:
                await asyncio.sleep(0.01)
