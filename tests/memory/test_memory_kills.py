"""Memory as a real process that is killed, and its index and embedder taken away and given back."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from services.memory import __main__ as memory
from services.memory.embedding import Vectors
from services.memory.embedding.wordllama import WordLlamaEmbedder
from services.memory.vectors import Near, Point, Where
from services.memory.vectors.edge import EdgeIndex
from tests.chaos.processes import Processes, Step
from tests.support.memories import ANN, Asking, Session, asking, call_of, records, save_of, until
from tests.support.stack import Stack
from vigil import crash
from vigil.bus.bus import Bus
from vigil.contracts import MemorySaved
from vigil.errors import Unavailable, VigilError
from vigil.memory.operations.save import Save, Saved
from vigil.memory.questions import REBUILD, Rebuild
from vigil.subjects import SessionKey

SAVES = 10_000
KILLS = 12
AT_ONCE = 40
POINTS = tuple(point for point in crash.POINTS if point.startswith("memory."))


@asynccontextmanager
async def processes_of(stack: Stack) -> AsyncIterator[Processes]:
    """Start services of this home as processes."""
    processes = Processes(stack.settings.home, {"NATS_URL": stack.broker.url})
    try:
        yield processes
    finally:
        await processes.stop()


async def persistently(ann: Asking, content: str, key: str) -> str:
    """Save until it is acknowledged, as a client with an idempotency key does."""
    asked = Save(content=content, by="user:ann", key=key)
    while True:
        try:
            # Who was killed never answers.
            saved: Saved = await ann.ask(asked, timeout_s=1.0)
            return saved.id
        except Unavailable:
            await asyncio.sleep(0.05)


async def is_served(ann: Asking) -> bool:
    with contextlib.suppress(VigilError):
        await ann.stats()
        return True
    return False


async def until_even(ann: Asking) -> None:
    async def is_even() -> bool:
        with contextlib.suppress(VigilError):
            stats = await ann.stats()
            return stats.rebuild is None and stats.vectors_position >= stats.position
        return False

    await until(is_even, "SQLite and the vectors caught up", within_s=120)


def in_sqlite(folder: Path) -> list[str]:
    """Return the ids of all memories of the database, by the file alone."""
    with contextlib.closing(sqlite3.connect(folder / "memory.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in db.execute("SELECT id FROM memories")]


async def in_vectors(folder: Path) -> int:
    """Return how many points the index holds, by its folder alone."""
    index = EdgeIndex(folder / "vectors")
    try:
        embedder = WordLlamaEmbedder()
        assert not await index.open(embedder.name, embedder.dimension), "it had to be filled anew"
        return await index.count(ANN)
    finally:
        await index.close()


# ---------------------------------------------------------------- kills


@pytest.mark.long
async def test_killed_during_thousands_of_saves(bare: Stack) -> None:
    """M-2, M-9, X-5: every acknowledged save is there, once: in the log, SQLite and the vectors."""
    ann = await asking(bare)
    acknowledged: dict[str, int] = {}
    todo = iter(range(SAVES))

    async def save() -> None:
        for number in todo:
            memory_id = await persistently(
                ann, f"fact {number} about topic {number % 97}", f"k{number}"
            )
            acknowledged[memory_id] = number

    async def kill(processes: Processes) -> None:
        for number in range(1, KILLS + 1):
            while len(acknowledged) < number * SAVES // (KILLS + 1):
                await asyncio.sleep(0.01)
            assert processes.kill("memory")

    async with processes_of(bare) as processes:
        processes.start("memory")
        await asyncio.gather(kill(processes), *(save() for _ in range(AT_ONCE)))
        assert len(acknowledged) == SAVES
        await until_even(ann)
        assert processes.kill("memory")  # and once more, when all is said and done
        await until_even(ann)
        assert len(await ann.listed()) == SAVES
        processes.kill("memory", for_good=True)
    saved = Counter(
        r.memory.id for r in await records(await bare.bus("admin")) if isinstance(r, MemorySaved)
    )
    assert saved == Counter(acknowledged.keys())
    folder = bare.settings.memory / "0"
    assert Counter(in_sqlite(folder)) == saved
    assert await in_vectors(folder) == SAVES


class People:
    """One new session after the other, because those of before wait for what died."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._sessions: list[Session] = []
        self.effects: list[tuple[Any, Any]] = []
        """What each turn asked for: a call, and a memory to save."""
        self.answered: list[str] = []

    async def come(self, random: Random, is_over: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            while not is_over.is_set():
                group.create_task(self._two_turns(len(self._sessions)))
                await asyncio.sleep(random.uniform(0.05, 0.25))

    async def _two_turns(self, number: int) -> None:
        """With a call each; in every other session, the second closes the first one's."""
        session = Session(self._bus, SessionKey("ann", "vigil", f"t{number}"))
        self._sessions.append(session)
        for ordinal in (4 * number, 4 * number + 2):
            call = call_of("remember", {"text": f"call {ordinal}"}, ordinal, key=session.key)
            decided = save_of(f"turn {ordinal}", ordinal + 1)
            self.effects.append((call, decided))
            await session.turn(call, decided)
            if number % 2 == 0:
                await session.result(call)
                self.answered.append(call.id)

    async def all_acked(self) -> None:
        for session in self._sessions:
            await session.all_acked()

    async def results(self) -> dict[str, Any]:
        """Return the answers; each was given once at most."""
        found: dict[str, Any] = {}
        for session in self._sessions:
            found |= await session.results()
        return found


async def test_killed_at_every_point(bare: Stack) -> None:
    """M-8, M-9, S-5, X-5: ended at each step of every protocol, nothing is lost or done twice."""
    ann, admin = await asking(bare), await bare.bus("admin")
    random, people = Random(7), People(admin)
    saved: list[str] = []
    is_over, is_rebuilding = asyncio.Event(), asyncio.Event()

    async def begin_rebuilding() -> None:
        is_rebuilding.set()

    async def save() -> None:
        while not is_over.is_set():
            number = len(saved)
            saved.append(f"rpc {number}")
            await persistently(ann, f"rpc {number}", f"k{number}")
            await asyncio.sleep(random.uniform(0.0, 0.04))

    async def rebuild() -> None:
        while not is_over.is_set():
            question = msgspec.json.encode(Rebuild(what="all"))
            if is_rebuilding.is_set():
                with contextlib.suppress(VigilError):
                    await ann.bus.ask_all(REBUILD, question, count=1, timeout=1)
            await asyncio.sleep(0.2)

    async with processes_of(bare) as processes:
        of_rebuilds = [point for point in POINTS if ".rebuild." in point]
        steps = [Step(point=point) for point in POINTS if point not in of_rebuilds]
        steps += [Step(point=point, prepare=begin_rebuilding) for point in of_rebuilds]
        processes.start("memory", steps)
        working = [asyncio.create_task(one()) for one in (save, rebuild)]
        working.append(asyncio.create_task(people.come(random, is_over)))
        await processes.plans_over(within_s=240)
        is_rebuilding.clear()
        is_over.set()
        await asyncio.gather(*working)
        await people.all_acked()
        await until_even(ann)
        contents = Counter(await ann.listed())
        crashed = [e.crash_at.partition(":")[0] for e in processes.exits if e.is_crash]
        assert sorted(crashed) == sorted(POINTS)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
        processes.kill("memory", for_good=True)
    results = await people.results()
    done = {call.payload.input["text"] for call, _ in people.effects if call.id in results}
    decided = {one.payload.content for _, one in people.effects}
    assert set(contents.values()) == {1}
    assert set(saved) | done | decided <= set(contents)
    assert people.answered
    assert set(people.answered) <= set(results)
    assert await admin.read("DEAD", ["dead.>"]) == []
    folder = bare.settings.memory / "0"
    assert len(in_sqlite(folder)) == await in_vectors(folder) == len(contents)


# ---------------------------------------------------------------- away and back


class Index(EdgeIndex):
    """The engine, which the test can take away, as a server is when its machine is."""

    is_away = False

    def _look(self) -> None:
        if self.is_away:
            raise Unavailable("the index is away")

    async def open(self, embedder: str, dimension: int) -> bool:
        self._look()
        return await super().open(embedder, dimension)

    async def upsert(self, points: Sequence[Point]) -> None:
        self._look()
        await super().upsert(points)

    async def flush(self) -> None:
        self._look()
        await super().flush()

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        self._look()
        return await super().search(vector, limit, where)


class Embedder(WordLlamaEmbedder):
    """The default model, which the test can take away."""

    is_away = False

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        if self.is_away:
            raise Unavailable("the model is away")
        return await super().embed(texts, is_query=is_query)


class Half(WordLlamaEmbedder):
    """Another model: the first half of each vector."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "half-128"
        self.dimension = 128

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        cut = (await super().embed(texts, is_query=is_query))[:, :128]
        norms = np.linalg.norm(cut, axis=1, keepdims=True)
        return np.ascontiguousarray(cut / np.maximum(norms, 1e-9), dtype=np.float32)


async def by_vector(ann: Asking, query: str) -> list[str]:
    return await ann.found(query, mode="vector", counts=False)


@pytest.mark.parametrize(
    ("what", "is_lost"),
    [
        ("index", True),
        ("embedder", False),
        pytest.param("index", False, marks=pytest.mark.long),
        pytest.param("embedder", True, marks=pytest.mark.long),
    ],
)
async def test_vectors_away_and_back(
    bare: Stack, monkeypatch: pytest.MonkeyPatch, what: str, is_lost: bool
) -> None:
    """M-3, X-5: saves and recalls go on, degraded, and writes catch up; also if the index came
    back empty."""
    monkeypatch.setattr(Index, "is_away", False)
    monkeypatch.setattr(Embedder, "is_away", False)
    monkeypatch.setattr(memory, "choose_index", lambda _, folder: Index(folder / "vectors"))
    monkeypatch.setattr(memory, "choose_embedder", lambda _: Embedder())
    await bare.start("memory")
    ann = await asking(bare)
    await ann.save("The dog sleeps on the sofa")
    await ann.until_vectors()
    gone = Index if what == "index" else Embedder
    monkeypatch.setattr(gone, "is_away", True)
    for number in range(30):
        await ann.save(f"The ship number {number} sails to Oslo")
    recalled = await ann.recall("ship Oslo")
    assert recalled.degraded == ("vectors",)
    assert recalled.hits
    stats = await ann.stats()
    assert stats.vectors_position < stats.position
    if is_lost:
        index = EdgeIndex(bare.settings.memory / "0" / "vectors")
        await bare.stop("memory")
        shutil.rmtree(bare.settings.memory / "0" / "vectors")
        await index.close()
        await bare.start("memory")
        assert (await ann.recall("dog")).degraded == ("vectors",)
        assert await ann.found("dog") == ["The dog sleeps on the sofa"]
    monkeypatch.setattr(gone, "is_away", False)
    await ann.until_vectors()
    assert (await ann.recall("ship")).degraded == ()
    assert "The dog sleeps on the sofa" in (await by_vector(ann, "a puppy on a couch"))[:1]
    assert len(await ann.found("the ship sails", mode="vector", limit=50)) == 31


async def test_another_embedder_makes_all_vectors_anew(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-9: spaces are never mixed: until all is made anew, recall says that it's degraded."""
    await bare.start("memory")
    ann = await asking(bare)
    for text in ("The dog sleeps on the sofa", "The ship sails to Oslo", "Ann drinks tea"):
        await ann.save(text)
    await ann.until_vectors()
    first = (await ann.stats()).embedder
    for embedder, dimension in ((Half, 128), (WordLlamaEmbedder, 256)):
        await bare.stop("memory")
        monkeypatch.setattr(memory, "choose_embedder", lambda _, kind=embedder: kind())
        await bare.start("memory")
        await ann.save(f"saved with {embedder.__name__}")
        await ann.until_vectors()
        assert (await by_vector(ann, "a puppy on a couch"))[0] == "The dog sleeps on the sofa"
        assert bare.contexts["memory"].facts["embedder"] == embedder().name
        assert embedder().dimension == dimension
        with contextlib.closing(sqlite3.connect(bare.settings.memory / "0" / "memory.db")) as db:
            sizes = db.execute("SELECT DISTINCT length(vector) FROM features").fetchall()
        assert sizes == [(4 * dimension,)]
    assert (await ann.stats()).embedder == first
    assert len(await ann.listed()) == 5


@pytest.mark.long
@pytest.mark.usefixtures("own_broker")
async def test_the_broker_away_and_back(bare: Stack) -> None:
    """X-5: the broker killed while people save; what was acknowledged is there, once."""
    await bare.start("memory")
    ann = await asking(bare)
    done: list[str] = []

    async def save(worker: int) -> None:
        for number in range(50):
            await persistently(ann, f"fact {worker} {number}", f"k{worker}-{number}")
            done.append(f"fact {worker} {number}")

    bare.broker.watch()
    saving = asyncio.gather(*(save(worker) for worker in range(8)))
    for threshold in (50, 150, 250):
        while len(done) < threshold:
            await asyncio.sleep(0.01)
        bare.broker.kill()
    await saving
    await until_even(ann)
    assert Counter(await ann.listed()) == Counter(done)
    assert await is_served(ann)
