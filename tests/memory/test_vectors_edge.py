"""The engine in a process of its own: kills, broken files, hangs, and bytes that must go."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from services.memory.vectors import Where, engine_process
from services.memory.vectors import shard as shards
from services.memory.vectors.edge import EdgeIndex
from services.memory.vectors.engine_calls import StoredPoint
from services.memory.vectors.filters import INDEXES, LAYOUT, allowed, payload_of, whose
from services.memory.vectors.shard import Shard
from tests.support import engines, pipes
from tests.support.canaries import written
from tests.support.examples import repeats
from tests.support.vectors import ANN, BOB, DIMENSION, found, point
from vigil import files
from vigil.errors import Unavailable

EMBEDDER = "tests-16"
CANARY = "CANARY-7f3a91"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


@pytest.fixture
async def index(folder: Path) -> AsyncIterator[EdgeIndex]:
    index = EdgeIndex(folder)
    assert await index.open(EMBEDDER, DIMENSION)
    yield index
    await index.close()


async def until(condition: Callable[[], bool], within_s: float = 20.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)


def kill(folder: Path) -> None:
    """Kill the engine and wait until it is gone; how it ended is left to be read by its loop."""
    (engine,) = engines.running(folder)
    engine.kill()
    while engines.running(folder):
        time.sleep(0.001)


async def test_what_was_flushed_survives_a_kill(folder: Path) -> None:
    """SPEC X-5: kill -9 of the service while it writes; its engine ends with it."""
    service = await pipes.start("tests.support.vectors_writer", str(folder), env=os.environ)
    async with asyncio.timeout(30):
        assert await service.stdout.readline() == b"flushed\n"
        # In the middle of the writes that follow.
        await service.stdout.read(0)
        service.kill()
        await service.wait()
    # Until its engine ended, nobody can open the folder.
    index = EdgeIndex(folder)
    assert not await index.open(EMBEDDER, DIMENSION)
    assert await index.count() >= 500
    for number in range(0, 500, 50):
        assert await found(index, near=number, limit=1) == [number]
    await index.close()


async def test_an_engine_that_died_is_started_again(index: EdgeIndex, folder: Path) -> None:
    await index.upsert([point(n) for n in range(10)])
    await index.flush()
    kill(folder)
    assert await found(index, near=3, limit=1) == [3]
    assert not await index.open(EMBEDDER, DIMENSION)
    assert await index.count() == 10


async def test_a_flush_tells_if_what_it_was_for_is_lost(index: EdgeIndex, folder: Path) -> None:
    """SPEC X-5: else the vectorizer would move its position past what nobody has."""
    await index.upsert([point(1)])
    await index.flush()
    await index.upsert([point(2)])
    kill(folder)
    with pytest.raises(Unavailable):
        await index.flush()
    await index.upsert([point(2)])
    await index.flush()
    assert await index.count() == 2


async def test_a_search_under_way_when_the_engine_dies_is_asked_again(
    index: EdgeIndex, folder: Path
) -> None:
    await index.upsert([point(1)])
    await index.flush()
    (engine,) = engines.running(folder)
    engine.suspend()
    searches = [asyncio.create_task(found(index)) for _ in range(5)]
    await asyncio.sleep(0)
    engine.kill()
    assert await asyncio.gather(*searches) == [[1]] * 5


async def test_an_engine_that_hangs_is_ended(folder: Path) -> None:
    """Everything has a limit."""
    index = EdgeIndex(folder, answer_s_max=2.0)
    await index.open(EMBEDDER, DIMENSION)
    await index.upsert([point(1)])
    await index.flush()
    (engine,) = engines.running(folder)
    engine.suspend()
    with pytest.raises(Unavailable, match="2 s"):
        await found(index)
    assert await found(index) == [1]
    await index.close()


async def test_a_folder_that_keeps_killing_the_engine_is_made_anew(
    index: EdgeIndex, folder: Path
) -> None:
    """No crash loop (SPEC X-6): the third death is the last on these files."""
    await index.upsert([point(1)])
    await index.flush()
    for _ in range(2):
        kill(folder)
        assert await found(index) == [1]
    kill(folder)
    with pytest.raises(Unavailable, match="lost"):
        await found(index)
    with pytest.raises(Unavailable, match="lost"):
        await index.upsert([point(1)])
    assert await index.open(EMBEDDER, DIMENSION)
    assert await index.count() == 0


async def test_one_folder_has_one_engine(index: EdgeIndex, folder: Path) -> None:
    """The second waits for the first: two would write over each other."""
    await index.upsert([point(1)])
    await index.flush()
    second = EdgeIndex(folder)
    opening = asyncio.create_task(second.open(EMBEDDER, DIMENSION))
    await until(lambda: len(engines.running(folder)) == 2)
    assert not opening.done()
    await index.close()
    assert not await opening
    assert await second.count() == 1
    await second.close()


def _kind(path: Path) -> tuple[str, str]:
    """Each indexed field has the same files: one of each kind will do."""
    return path.parent.name.rpartition("-")[2], path.name


def _copy(folder: Path, to: Path) -> None:
    """Copy a folder with the holes of its files, which are nearly all of them."""
    for path in _files(folder):
        other = to / path.relative_to(folder)
        other.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, other.open("wb") as target:
            for start, end in files.written(source.fileno()):
                target.seek(start)
                target.write(os.pread(source.fileno(), end - start, start))
            target.truncate(path.stat().st_size)


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


def _scribbled(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xa5" * min(path.stat().st_size, 1 << 16))


def _deleted(path: Path) -> None:
    path.unlink()


@pytest.fixture
def few_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """One indexed field of each kind instead of nine: each has ten files of its own."""
    kinds = {kind: name for name, kind in reversed(INDEXES.items())}
    monkeypatch.setattr(shards, "INDEXES", {name: kind for kind, name in kinds.items()})


BREAKING: tuple[Callable[[Path], None], ...] = (_truncated, _scribbled, _deleted)
WAYS = repeats(len(BREAKING), fast=1)


@pytest.mark.repeated
@pytest.mark.usefixtures("few_fields")
def test_a_broken_file_is_never_fatal(tmp_path: Path) -> None:
    """Each kind of file of the engine in turn: the shard is refused, or has all its points.

    In the long form, each in each way; else every other one, and the ways take turns.

    In this process; that the engine may even die of it is what the tests above are about.
    """
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    shard, _ = Shard.open(whole, EMBEDDER, DIMENSION, is_anew=False)
    shard.upsert(_rows(range(100)))
    shard.flush()
    shard.close()
    refused = 0
    kinds = {_kind(path): path.relative_to(whole) for path in sorted(_files(whole))}
    names = list(kinds.values())[:: repeats(1, fast=3)]
    tried = [(name, n + way) for n, name in enumerate(names) for way in range(WAYS)]
    for name, way in tried:
        _copy(whole, copy)
        BREAKING[way % len(BREAKING)](copy / name)
        wanted = shards.MadeWith(embedder=EMBEDDER, dimension=DIMENSION, layout=LAYOUT)
        made_with = shards._made_with(copy, wanted)
        opened = shards._load(copy, made_with) if made_with is not None else None
        refused += opened is None
        if opened is not None:
            assert opened.count(shards.engine.CountRequest(exact=True)) == 100, name
            opened.close()
        shutil.rmtree(copy)
    assert 3 <= refused < len(tried)


@pytest.mark.parametrize("breaking", ["1/edge_config.json", "made-with.json"])
async def test_what_cannot_be_opened_is_made_anew(
    index: EdgeIndex, folder: Path, breaking: str
) -> None:
    await index.upsert([point(1)])
    await index.flush()
    await index.close()
    (folder / breaking).write_bytes(b"\0not json")
    assert await index.open(EMBEDDER, DIMENSION)
    await index.upsert([point(2)])
    assert await found(index) == [2]


async def test_points_of_an_older_version_are_made_anew(index: EdgeIndex, folder: Path) -> None:
    """They have no numbers that a search could tell: what it was filled with is stored again."""
    await index.upsert([point(1)])
    await index.flush()
    await index.close()
    made_with = msgspec.json.decode((folder / shards.MADE_WITH).read_bytes())
    (folder / shards.MADE_WITH).write_bytes(msgspec.json.encode(made_with | {"layout": 1}))
    assert await index.open(EMBEDDER, DIMENSION)
    assert await found(index) == []
    await index.upsert([point(2)])
    await index.flush()
    await index.close()
    assert not await index.open(EMBEDDER, DIMENSION)
    assert await found(index) == [2]


async def test_a_dropped_scope_leaves_no_bytes(index: EdgeIndex, folder: Path) -> None:
    """SPEC X-8: not in the files that are there, and the ones that were are written over."""
    await index.upsert([point(n, source=f"{CANARY}-{n}", thread=CANARY) for n in range(300)])
    await index.upsert([point(n, source="KEEPER-22", scope=BOB) for n in range(300)])
    await index.flush()
    was, vector_7 = _linked(folder, folder.parent / "links"), _stored_vector(folder.parent / "7", 7)
    assert _holding(was, CANARY.encode())
    assert _holding(was, vector_7)
    await index.drop(ANN)
    await index.flush()
    assert _holding(_files(folder), b"KEEPER-22")
    for planted in (CANARY.encode(), vector_7, point(7).id.encode()):
        assert not _holding(was, planted)
    assert not _holding(_files(folder), CANARY.encode())
    assert await index.count() == 300
    await index.close()
    assert not _holding(_files(folder), CANARY.encode())


async def test_dropping_everything_leaves_no_bytes(index: EdgeIndex, folder: Path) -> None:
    """SPEC X-8."""
    await index.upsert([point(n, source=CANARY) for n in range(100)])
    await index.flush()
    was = _linked(folder, folder.parent / "links")
    await index.drop()
    assert not _holding([*was, *_files(folder)], CANARY.encode())
    assert await index.count() == 0


async def test_searches_go_on_while_a_scope_is_dropped(index: EdgeIndex) -> None:
    """Bob doesn't wait until Ann is forgotten."""
    await index.upsert([point(n, scope=BOB) for n in range(1500)])
    await index.upsert([point(1)])
    dropping = asyncio.create_task(index.drop(ANN))
    meanwhile = 0
    while not dropping.done():
        assert await found(index, scope=BOB, near=5, limit=1) == [5]
        meanwhile += not dropping.done()
    await dropping
    assert meanwhile > 3
    assert (await index.count(ANN), await index.count(BOB)) == (0, 1500)


@pytest.mark.usefixtures("few_fields")
@pytest.mark.parametrize("step", ["begun", "copied", "flushed", "marked", "scrubbing"])
def test_a_drop_that_was_killed_is_repeated(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC X-5, X-8: at each step, what others had stays, and a repeat ends it."""
    shard, _ = Shard.open(tmp_path, EMBEDDER, DIMENSION, is_anew=False)
    shard.upsert(_rows(range(400)))
    shard.upsert(_rows([1000], source=CANARY, scope=BOB))
    shard.flush()
    _drop_until(step, shard, monkeypatch)
    again, is_new = Shard.open(tmp_path, EMBEDDER, DIMENSION, is_anew=False)
    assert not is_new
    assert (again.count(whose(ANN)), again.count(whose(BOB))) == (400, 0)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    again.forget(whose(BOB))
    while not again.copy_more():
        pass
    again.take_over()
    while not again.scrub_more():
        pass
    assert (again.count(whose(ANN)), again.count(())) == (400, 400)
    assert not _holding(_files(tmp_path), CANARY.encode())
    again.close()


def _drop_until(step: str, shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on with a drop up to a step, and leave it there as a kill would."""

    class Killed(Exception):
        pass

    def killed(*_: object) -> None:
        raise Killed

    shard.forget(whose(BOB))
    if step == "begun":
        return
    while not shard.copy_more():
        pass
    if step == "copied":
        return
    where = {"flushed": (Shard, "_mark"), "marked": (shards, "_ended")}.get(step)
    if where is None:
        shard.take_over()
        for _ in range(5):
            shard.scrub_more()
        return
    with monkeypatch.context() as patched:
        patched.setattr(*where, killed)
        with pytest.raises(Killed):
            shard.take_over()


async def test_a_folder_in_use_is_left_alone(
    index: EdgeIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not opened, and above all not made anew."""
    await index.upsert([point(1)])
    await index.flush()
    hasty = partial(engines.spawn, module="tests.support.hasty_engine")
    monkeypatch.setattr(engine_process, "spawn", hasty)
    second = EdgeIndex(folder)
    with pytest.raises(Unavailable, match="another process"):
        await second.open(EMBEDDER, DIMENSION)
    await second.close()
    assert await found(index) == [1]


@pytest.mark.repeated
async def test_a_rare_source_in_5000_gets_all_its_results(index: EdgeIndex) -> None:
    """SPEC M-3. How fast, `make bench` measures; of 100,000: docs/adr/0017."""
    count = repeats(5000, fast=1000)
    await index.upsert([point(n, source="rare" if n % 500 == 0 else "chat") for n in range(count)])
    for near in range(10):
        rare = await found(index, limit=10, near=near, sources=("rare",))
        assert sorted(rare) == list(range(0, count, 500))


def test_the_engine_ends_with_its_input(folder: Path) -> None:
    """And not by the signals that a terminal sends to the whole group."""
    engine = subprocess.Popen(
        [sys.executable, "-m", "services.memory.vectors.engine", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert engine.stdin is not None
    assert engine.stdout is not None
    try:
        _wait_for(folder / "lock")
        engine.send_signal(signal.SIGINT)
        engine.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            engine.wait(0.2)
        engine.stdin.close()
        assert engine.wait(10) == 0
    finally:
        engine.kill()
        engine.stdout.close()


def test_conditions_begin_with_whose() -> None:
    """RELIABILITY S13: there is no search without an owner."""
    for where in (Where(scope=ANN), Where(scope=ANN, as_of=1.0, sources=("x",))):
        assert allowed(where)[0].value == "vigil.ann"  # type: ignore[union-attr]


def _wait_for(path: Path) -> None:
    give_up_at = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def _rows(numbers: object, **changes: object) -> list[StoredPoint]:
    points = [point(n, **changes) for n in numbers]  # type: ignore[attr-defined]
    return [StoredPoint(one.num, one.vector, payload_of(one)) for one in points]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def _linked(folder: Path, links: Path) -> list[Path]:
    """Give each file a second name, under which its blocks can be read after it was removed."""
    links.mkdir()
    names = []
    for number, path in enumerate(_files(folder)):
        os.link(path, links / str(number))
        names.append(links / str(number))
    return names


def _stored_vector(folder: Path, number: int) -> bytes:
    """Return a point's vector as it is in files: not as float32, as the engine has it rounded."""
    shard, _ = Shard.open(folder, EMBEDDER, DIMENSION, is_anew=True)
    shard.upsert(_rows([number]))
    shard.flush()
    shard.close()
    (vectors,) = folder.rglob("vector_storage/*/chunk_0.mmap")
    stored = written(vectors).rstrip(b"\0")
    assert len(stored) >= 2 * DIMENSION
    return stored


def _holding(files: list[Path], planted: bytes) -> list[Path]:
    return [path for path in files if planted in written(path)]
