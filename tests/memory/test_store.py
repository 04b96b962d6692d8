"""The replica's database: what is made of a damaged one, and following the log (SPEC M-9)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.memory.store import connection, migrations, places
from services.memory.store.store import FILE, Store
from tests.support.memory_records import (
    ANN,
    BOB,
    T0,
    accessed,
    dump,
    forgotten,
    ids,
    memory_id,
    merged,
    saved,
    undone,
)
from vigil.errors import NotFound
from vigil.memory.operations.list import ListMemories
from vigil.subjects import Scope


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


# ---------------------------------------------------------------- the file


async def test_what_was_applied_is_there_after_opening_again(tmp_path: Path) -> None:
    """M-9: with the position that it stands for."""
    store = await Store.open(tmp_path)
    assert (store.position, store.vectors_position) == (0, 0)
    await store.apply([saved(1), saved(7)])
    await store.set_vectors({1: b"1" * 8, 7: b"7" * 8}, position=7)
    await store.set_meta("log", "of yesterday")
    before = await dump(store)
    await store.close()

    again = await Store.open(tmp_path)
    assert (again.position, again.vectors_position) == (7, 7)
    assert await again.meta("log") == "of yesterday"
    assert await again.meta("nothing") is None
    assert await dump(again) == before
    await again.close()


def _without_its_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _with_rubbish(path: Path) -> None:
    path.write_bytes(b"this was never a database" * 1000)


def _with_a_damaged_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3 * 4096 : 4 * 4096] = b"\xff" * 4096
    path.write_bytes(data)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _from_the_future(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()


@pytest.mark.parametrize(
    "damage",
    [_without_its_end, _with_rubbish, _with_a_damaged_page, _empty, _from_the_future],
)
async def test_a_file_that_cannot_be_used_is_made_anew(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    """M-9: nothing in it is the truth, so it is deleted; what it held comes from the log again."""
    store = await Store.open(tmp_path)
    await store.apply([saved(n) for n in range(1, 200)])
    await store.compact()
    await store.close()
    damage(tmp_path / FILE)

    again = await Store.open(tmp_path)
    assert again.position == 0
    assert await again.scopes() == []
    await again.apply([saved(n) for n in range(1, 200)])
    assert (await again.list(ANN, ListMemories(), T0)).memories[0].seq == 199
    await again.close()


async def test_a_file_that_somebody_holds_is_not_deleted(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """What isn't the file's fault ends the start, and leaves the file alone."""
    store = await Store.open(tmp_path)
    await store.apply([saved(1)])
    await store.close()
    monkeypatch.setattr(connection, "_BUSY_TIMEOUT_S", 0.05)
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="locked"):
        await Store.open(tmp_path)
    holder.close()
    again = await Store.open(tmp_path)
    assert again.position == 1
    await again.close()


async def test_a_file_that_somebody_reads_is_not_deleted(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """M-9: a look with another program costs a start that is tried again, and not a rebuild."""
    monkeypatch.setattr(connection, "_BUSY_TIMEOUT_S", 0.05)
    store = await Store.open(tmp_path)
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN")
    assert holder.execute("SELECT count(*) FROM memories").fetchone() == (0,)
    await store.apply([saved(1)])
    await store.close()
    with pytest.raises(OSError, match="in use"):
        await Store.open(tmp_path)
    holder.close()
    again = await Store.open(tmp_path)
    assert again.position == 1
    await again.close()


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="file"):
        await Store.open(tmp_path / "file" / "0")


def test_a_script_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    """Each script and its number are one transaction."""
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE one (a INTEGER);")
    (tmp_path / "0002_second.sql").write_text("CREATE TABLE two (a INTEGER); CREATE nonsense;")
    db = sqlite3.connect(":memory:", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="nonsense"):
        migrations.migrate(db, tmp_path)
    assert not db.in_transaction
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("one",)]
    (tmp_path / "0002_second.sql").write_text("CREATE TABLE two (a INTEGER);")
    migrations.migrate(db, tmp_path)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    db.close()


def test_scripts_count_without_a_gap(tmp_path: Path) -> None:
    (tmp_path / "0001_first.sql").write_text("")
    (tmp_path / "0003_third.sql").write_text("")
    with pytest.raises(ValueError, match="gap"):
        migrations.scripts(tmp_path)
    numbers = [number for number, _ in migrations.scripts()]
    assert numbers == list(range(1, len(numbers) + 1))


# ---------------------------------------------------------------- following the log


async def test_what_is_known_already_is_skipped(store: Store) -> None:
    """S-4, M-9: everything arrives twice; a batch may begin anywhere."""
    await store.apply([saved(1), saved(2), accessed(3, 1)])
    before = await dump(store)
    await store.apply([saved(2), accessed(3, 1)])
    await store.apply([])
    assert await dump(store) == before
    await store.apply([accessed(3, 1), accessed(4, 1)])
    got = await store.get(ANN, memory_id(1), T0)
    assert got.memory.accesses == 2
    assert store.position == 4


async def test_a_caller_that_was_cancelled_may_repeat_it(store: Store) -> None:
    """M-9: the batch may have been applied, without anybody to tell."""
    entries = [saved(1), accessed(2, 1)]
    applying = asyncio.create_task(store.apply(entries))
    await asyncio.sleep(0)  # It has begun, and waits for the thread.
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    assert store.position == 0
    await store.apply(entries)
    assert store.position == 2
    assert (await store.get(ANN, memory_id(1), T0)).memory.accesses == 1


async def test_a_batch_is_applied_whole_or_not_at_all(store: Store, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """M-9: position and rows are one transaction."""
    await store.apply([saved(1)])
    before = await dump(store)
    make = places.make

    def fail(db: sqlite3.Connection, scope: Scope) -> places.Place:
        if scope == BOB:
            raise sqlite3.OperationalError("database or disk is full")
        return make(db, scope)

    monkeypatch.setattr(places, "make", fail)
    with pytest.raises(sqlite3.OperationalError):
        await store.apply([saved(2), forgotten(3, 1), saved(4, scope=BOB)])
    assert store.position == 1
    assert await dump(store) == before


async def test_skipping_what_is_gone_from_the_log(store: Store) -> None:
    """X-8: erased records leave gaps, and a log may end with one."""
    await store.skip_to(9)
    await store.skip_to(3)
    assert store.position == 9
    await store.apply([saved(9)])
    assert await store.scopes() == []


# ---------------------------------------------------------------- for the vector index


async def test_what_changed_comes_by_record(store: Store) -> None:
    """A page never ends inside a record, or its position would skip the rest."""
    await store.apply([saved(n) for n in range(1, 8)])
    page = await store.changed(0, 3)
    assert [(row.num, row.changed_seq) for row in page] == [(1, 1), (2, 2), (3, 3)]
    await store.apply([forgotten(8, 2, 3, 4, reason="decayed")])
    page = await store.changed(5, 3)
    assert [row.num for row in page] == [6, 7, 2, 3, 4]
    assert {row.changed_seq for row in page[2:]} == {8}
    assert await store.changed(8, 3) == []
    assert await store.count_changed(5) == 5


async def test_what_the_index_is_told(store: Store) -> None:
    """Payload and liveness, as the seam's points want them."""
    await store.apply([saved(1, "Hello", source="chat:t1", thread="t1", is_tainted=True)])
    row = (await store.changed(0, 10))[0]
    assert (row.id, row.scope, row.content) == (memory_id(1), ANN, "Hello")
    assert (row.source, row.type, row.thread, row.is_tainted) == ("chat:t1", "fact", "t1", True)
    assert row.created_at == row.happened_at == T0.timestamp() + 60
    assert (row.vector, row.ended_at) == (None, None)
    await store.set_vectors({1: b"v" * 8})
    assert (await store.changed(0, 10))[0].vector == b"v" * 8
    await store.apply([forgotten(2, 1, reason="expired")])
    assert (await store.changed(0, 10))[0].ended_at == T0.timestamp() + 120
    await store.apply([forgotten(3, 1)])
    row = (await store.changed(0, 10))[0]
    assert row.is_forgotten
    assert (row.ended_at, row.content, row.vector) == (0, "", None)
    await store.set_vectors({1: b"v" * 8})
    assert (await store.changed(0, 10))[0].vector is None


async def test_dropping_vectors(store: Store) -> None:
    """Another embedder begins from nothing."""
    await store.apply([saved(1), saved(2)])
    await store.set_vectors({1: b"1" * 8, 2: b"2" * 8}, position=2)
    await store.drop_vectors()
    assert store.vectors_position == 0
    assert [row.vector for row in await store.changed(0, 10)] == [None, None]


# ---------------------------------------------------------------- erasing


async def test_an_erased_scope_leaves_no_bytes(store: Store, tmp_path: Path) -> None:
    """X-8: neither in the tables nor in the file; another owner's rows stay as they are."""
    await store.apply([saved(1, "bob's canary-b7", scope=BOB), saved(2, scope=ANN)])
    theirs = await store.list(ANN, ListMemories(), T0)
    await store.apply(
        [saved(3, "the canary-a1 sings", source="canary-a2", provenance=("canary-a3",))]
    )
    await store.apply([saved(4), merged(5, 3, 4), forgotten(6, 4), accessed(7, 5)])
    await store.set_vectors({3: b"canary-a4" * 100})
    bobs = await store.list(BOB, ListMemories(), T0)

    await store.erase(ANN)
    assert await store.scopes() == [BOB]
    assert await store.place(ANN) is None
    assert (await store.list(ANN, ListMemories(), T0)).memories == ()
    with pytest.raises(NotFound):
        await store.get(ANN, theirs.memories[0].id, T0)
    assert await store.list(BOB, ListMemories(), T0) == bobs
    await store.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"canary-a" not in data
    assert b"canary-b7" in data


async def test_erasing_waits_for_who_reads(store: Store, tmp_path: Path) -> None:
    """X-8: an old reader would keep what is erased in the database's own log."""
    await store.apply([saved(1, "canary-a1")])
    async with store.reader() as reader:
        await reader.execute("BEGIN")
        await reader.execute_fetchall("SELECT count(*) FROM memories")
        erasing = [asyncio.create_task(store.erase(scope)) for scope in (ANN, BOB)]
        await store.set_meta("log", "written meanwhile")
        assert not any(task.done() for task in erasing)
        await reader.execute("ROLLBACK")
    await asyncio.gather(*erasing)
    assert b"canary" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


async def test_a_forgotten_memory_leaves_no_words(store: Store) -> None:
    """M-2: content, words and vector are blanked; the log keeps it until it's erased."""
    await store.apply([saved(1, "zanzibarian canary"), saved(2, "something else")])
    await store.set_vectors({1: b"canary" * 10})
    await store.apply([forgotten(3, 1)])
    found = await dump(store)
    assert "canary" not in repr(found)
    assert not [word for word in found["text_1"] if word[1] == 1]


async def test_two_scopes_have_tables_of_their_own(store: Store) -> None:
    """M-2: the same id may be in both, and nothing of one is found through the other."""
    await store.apply([saved(1, "ann", number=9), saved(2, "bob", number=9, scope=BOB)])
    assert (await store.get(ANN, memory_id(9), T0)).memory.content == "ann"
    assert (await store.get(BOB, memory_id(9), T0)).memory.content == "bob"
    await store.apply([forgotten(3, 9), undone(4, 9), merged(5, 9)])
    with pytest.raises(NotFound):
        await store.get(ANN, memory_id(9), T0)
    bob = (await store.get(BOB, memory_id(9), T0)).memory
    assert (bob.ended, bob.accesses) == (None, 0)
    assert await store.known(BOB, [*ids(9), "x"]) == {memory_id(9)}
    assert await store.known(Scope("vigil", "nobody"), ids(9)) == frozenset()


def test_nothing_but_places_names_the_tables_of_a_scope() -> None:
    """M-2: a scope becomes a number and a table in one module, so that can't be got round."""
    folder = Path(places.__file__).parent
    for source in folder.rglob("*.py"):
        text = source.read_text("utf-8")
        if source.name != "places.py":
            assert "text_{" not in text, source
            assert "agent = ?" not in text, source
            assert "INTO scopes" not in text, source
