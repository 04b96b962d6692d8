"""An index that is lost while nobody writes: the next search finds out, and it is filled again."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import psutil

from services.memory.config import Limits
from services.memory.embedding.wordllama import WordLlamaEmbedder
from services.memory.store import Store
from services.memory.vectorizer import Vectorizer, Whole
from services.memory.vectors import Where
from services.memory.vectors.edge import EdgeIndex
from tests.support.memory_records import ANN, saved
from vigil.errors import Unavailable


async def test_a_search_that_fails_has_the_index_filled_again(tmp_path: Path) -> None:
    """SPEC M-9: the engine is killed and its files are gone; no save has to come along."""
    store, embedder = await Store.open(tmp_path / "0"), WordLlamaEmbedder()
    edge = EdgeIndex(tmp_path / "vectors")
    vectorizer = Vectorizer(store, edge, embedder, Limits())
    index = Whole(edge, vectorizer)
    await store.apply([saved(n) for n in range(1, 6)])
    running = asyncio.create_task(vectorizer.run())
    (asked,) = await embedder.embed(["memory 1"])
    try:
        assert await _searched(index, asked.tobytes()) == 5
        (engine,) = psutil.Process().children()
        shutil.rmtree(tmp_path / "vectors")
        engine.kill()
        assert await _searched(index, asked.tobytes()) == 5
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await edge.close()
        await store.close()


async def _searched(index: Whole, vector: bytes) -> int:
    """How many memories a search finds, once it can find any."""
    async with asyncio.timeout(30):
        while True:
            try:
                return len(await index.search(vector, 10, Where(scope=ANN)))
            except Unavailable:
                await asyncio.sleep(0.01)
