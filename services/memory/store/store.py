"""The replica's own database: what MEMORIES says, in tables that can be searched (SPEC M-9).

One connection writes, others read, each on its own thread. The position in the log is written in
the transaction of what it stands for, so whatever ends the process, the database is exactly as of
some record, and goes on from there. It is never backed up or repaired: a file that can't be read is
deleted, and made again from the log. (Put aside, it would keep what its owner has erased.)
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import structlog

from vigil.errors import NotFound
from vigil.memory.operations.get import Got
from vigil.memory.operations.graph import GetGraph, Graph
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.operations.stats import GetStats, Stats
from vigil.memory.questions import MemoryView
from vigil.subjects import Scope

from ..rules.decide import Reverted
from ..rules.sameness import Supersession
from . import changes, likeness, lists, places, views
from .changes import Changed
from .connection import StoreConnection, Work, connect
from .fold import Entry, Fold
from .migrations import NewerSchema, migrate
from .places import Place
from .undo import reverted
from .work import existing

__all__ = ["Changed", "Entry", "Store"]

log = structlog.get_logger("vigil.memory")

FILE: Final = "memory.db"
READERS: Final = 2
_UNUSABLE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""A damaged file, none, or one whose tables aren't ours."""
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
T = TypeVar("T")


class Store:
    """One replica's database. Whoever opens it is the only one that has it open."""

    def __init__(
        self, path: Path, writer: StoreConnection, readers: Sequence[StoreConnection]
    ) -> None:
        self._path = path
        self._writer = writer
        self._all_readers = readers
        self._compacting = asyncio.Lock()
        self._readers: asyncio.Queue[StoreConnection] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(reader)
        self.position = 0
        """The last sequence of MEMORIES that is in here."""
        self.vectors_position = 0
        """The last one whose vectors are in the index, as far as :meth:`set_vectors` was told."""

    @classmethod
    async def open(cls, folder: Path) -> Store:
        """Open the database of that folder, or make it; one that can't be used is made anew.

        Raises:
            OSError: the file can't be opened, or somebody else holds it.
        """
        path = _file_in(folder)
        try:
            return await cls._open(path)
        except (sqlite3.Error, NewerSchema) as error:
            if not _is_of_the_file(error):
                raise OSError(f"{path}: {error}") from error
            log.warning(
                "the database can't be used; it is made again from the log",
                action="memory.store_unusable",
                error=str(error),
            )
        delete(folder)
        return await cls._open(path)

    @classmethod
    async def _open(cls, path: Path) -> Store:
        writer = await connect(path)
        opened = [writer]
        try:
            await writer.run(_check)
            for _ in range(READERS):
                opened.append(await connect(path, is_reader=True))
            store = cls(path, writer, opened[1:])
            store.position = int(await store.meta("position") or 0)
            store.vectors_position = int(await store.meta("vectors") or 0)
        except BaseException:
            for each in opened:
                await each.close()
            raise
        return store

    async def close(self) -> None:
        for each in (*self._all_readers, self._writer):
            await each.close()

    # ------------------------------------------------------------ following the log

    async def apply(self, entries: Sequence[Entry]) -> None:
        """Apply records of MEMORIES in order, all of them or none; those known already are skipped.

        Raises:
            Unavailable: the disk is full; nothing was applied.
            sqlite3.Error: nothing was applied.
        """
        if entries and entries[-1].seq > self.position:
            self.position = await self._writer.transact(lambda db: _apply(db, entries))

    async def skip_to(self, position: int) -> None:
        """Note that the log has nothing for us up to `position`: what was there is gone."""
        if position > self.position:
            self.position = await self._writer.transact(lambda db: _move(db, position))

    async def meta(self, key: str) -> str | None:
        """Return what was kept under a key: ``log``, ``embedder``."""
        rows = await self._writer.run(
            lambda db: db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        )
        return None if rows is None else str(rows[0])

    async def set_meta(self, key: str, value: str) -> None:
        await self._writer.transact(lambda db: _set_meta(db, key, value))

    # ------------------------------------------------------------ vectors

    async def changed(self, after: int, limit: int) -> list[Changed]:
        """Return what changed after that sequence, in its order, for the vector index.

        All that one record changed is in one answer, so it may be somewhat longer than `limit`; the
        `changed_seq` of the last one is the `position` to go on from.
        """
        return await self.read(lambda db: changes.since(db, after, limit))

    async def count_changed(self, after: int) -> int:
        """Return how many there are of those."""
        sql = "SELECT count(*) FROM memories WHERE changed_seq > ?"
        found: int = await self.read(lambda db: db.execute(sql, (after,)).fetchone()[0])
        return found

    async def set_vectors(
        self, vectors: Mapping[int, bytes], *, position: int | None = None
    ) -> None:
        """Keep vectors by number, and how far the index is. What was forgotten gets none."""

        def write(db: sqlite3.Connection) -> None:
            rows = [(vector, num) for num, vector in vectors.items()]
            db.executemany("UPDATE features SET vector = ? WHERE num = ?", rows)
            if position is not None:
                _set_meta(db, "vectors", str(position))

        await self._writer.transact(write)
        if position is not None:
            self.vectors_position = position

    async def drop_vectors(self) -> None:
        """Forget all vectors, and that the index has any: another embedder makes them anew."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("UPDATE features SET vector = NULL WHERE vector IS NOT NULL")
            _set_meta(db, "vectors", "0")

        await self._writer.transact(write)
        self.vectors_position = 0

    # ------------------------------------------------------------ reading

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a reading connection, on the state of one moment."""
        async with self._reading() as reader:
            return await reader.snapshot(work)

    @contextlib.asynccontextmanager
    async def reader(self) -> AsyncIterator[StoreConnection]:
        """Lend a reading connection. Each statement sees what is there when it runs."""
        async with self._reading() as reader:
            yield reader

    @contextlib.asynccontextmanager
    async def _reading(self) -> AsyncIterator[StoreConnection]:
        reader = await self._readers.get()
        try:
            yield reader
        finally:
            self._readers.put_nowait(reader)

    async def place(self, scope: Scope) -> Place | None:
        """Return where a scope's rows are; None: there are none."""
        return await self.read(lambda db: places.find(db, scope))

    async def scopes(self) -> list[Scope]:
        return await self.read(places.everywhere)

    async def agents(self, owner: str) -> frozenset[str]:
        """Return the agents that have a memory of that owner."""
        return await self.read(lambda db: places.agents(db, owner))

    async def get(self, scope: Scope, memory_id: str, now: datetime) -> Got:
        """Return a memory and its associations. Raises: NotFound."""
        return await self.read(lambda db: views.one(db, places.find(db, scope), memory_id, now))

    async def list(self, scope: Scope, question: ListMemories, now: datetime) -> Listed:
        """Return a page. Raises: InvalidInput for a cursor that isn't one."""
        return await self.read(lambda db: lists.page(db, places.find(db, scope), question, now))

    async def graph(self, scope: Scope, question: GetGraph, now: datetime) -> Graph:
        """Return memories and the associations among them. Raises: NotFound."""
        return await self.read(lambda db: views.graph(db, places.find(db, scope), question, now))

    async def stats(self, scope: Scope, question: GetStats, now: datetime) -> Stats:
        """Return figures; `index` and `rebuild` are for the service to add."""
        found = await self.read(lambda db: views.stats(db, places.find(db, scope), now))
        return msgspec.structs.replace(
            found,
            position=self.position,
            vectors_position=self.vectors_position,
            embedder=await self.meta("embedder") or "",
        )

    async def known(self, scope: Scope, ids: Iterable[str]) -> frozenset[str]:
        """Return those ids that are in the scope, and weren't forgotten on request."""
        wanted = msgspec.json.encode(list(ids)).decode()
        return await self.read(lambda db: _known(db, places.find(db, scope), wanted))

    async def saved_before(
        self, scope: Scope, memory_id: str, now: datetime
    ) -> tuple[bool, MemoryView | None]:
        """Tell whether that id was ever used; its memory, unless that was forgotten on request."""
        return await self.read(lambda db: _saved_before(db, places.find(db, scope), memory_id, now))

    async def meet(self, saved: Sequence[tuple[Scope, str, Sequence[str]]]) -> builtins.list[bool]:
        """Tell of each id whether another memory of its scope has one of its keys."""
        return await self.read(
            lambda db: [
                likeness.meets(db, places.find(db, scope), id_, keys) for scope, id_, keys in saved
            ]
        )

    async def successions(
        self, saved: Sequence[tuple[Scope, str]], now: datetime
    ) -> builtins.list[builtins.list[Supersession]]:
        """Return what memories of those ids mean for others that stand; see `upkeep.sameness`."""
        return await self.read(
            lambda db: [
                likeness.of_one(db, places.find(db, scope), id_, now) for scope, id_ in saved
            ]
        )

    async def plan_undo(self, scope: Scope, source: str) -> Reverted:
        """Return what reverting a source would mean; the fold decides again what it does.

        `source` may also be the id of an event, or of a memory. A record may name some of the ids
        and another one the others.
        """
        return await self.read(lambda db: reverted(db, places.find(db, scope), source))

    # ------------------------------------------------------------ erasing

    async def erase(self, scope: Scope) -> None:
        """Remove everything about a scope, and leave no bytes of it in the file."""
        await self._writer.transact(lambda db: _erase(db, scope))
        await self.compact()

    async def compact(self) -> None:
        """Write the file anew, without what was deleted in it. Who reads waits meanwhile.

        Raises:
            sqlite3.Error: repeat it.
        """
        async with contextlib.AsyncExitStack() as stack, self._compacting:
            # An old reader would keep what was deleted in the database's own log.
            for _ in self._all_readers:
                await stack.enter_async_context(self._reading())
            await self._writer.run(_compact)


def _file_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / FILE


def delete(folder: Path) -> None:
    """Delete the database of a folder that nobody has open."""
    for suffix in _SUFFIXES:
        (folder / f"{FILE}{suffix}").unlink(missing_ok=True)


def _is_of_the_file(error: Exception) -> bool:
    """Tell whether it's what is in the file, and not that it can't be got at."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF in _UNUSABLE


def _check(db: sqlite3.Connection) -> None:
    """Bring the file up to date, and look whether it is whole. Raises: sqlite3.Error."""
    migrate(db)
    problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    # A process that was killed may have left what was erased in the database's own log.
    _truncate(db)


def _apply(db: sqlite3.Connection, entries: Sequence[Entry]) -> int:
    """Apply what is new to the file; a caller that was cancelled may not know what is."""
    position = _position(db)
    fold = Fold(db)
    for entry in entries:
        if entry.seq > position:
            fold.apply(entry)
    fold.finish()
    return _move(db, entries[-1].seq)


def _position(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT value FROM meta WHERE key = 'position'").fetchone()
    return 0 if row is None else int(row[0])


def _move(db: sqlite3.Connection, position: int) -> int:
    """Note the position, which never goes back; return it."""
    position = max(position, _position(db))
    _set_meta(db, "position", str(position))
    return position


def _compact(db: sqlite3.Connection) -> None:
    # What is written anew may be larger than memory.
    db.execute("PRAGMA temp_store = FILE")
    try:
        db.execute("VACUUM")
    finally:
        db.execute("PRAGMA temp_store = MEMORY")
    _truncate(db)


def _truncate(db: sqlite3.Connection) -> None:
    """Empty the database's own log of writes. Raises: sqlite3.OperationalError."""
    is_busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if is_busy:
        error = sqlite3.OperationalError("the log of the database is in use")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error


def _set_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def _known(db: sqlite3.Connection, place: Place | None, wanted: str) -> frozenset[str]:
    if place is None:
        return frozenset()
    rows = db.execute(
        "SELECT m.id FROM json_each(?) w CROSS JOIN memories m ON m.scope = ? AND m.id = w.value"
        " WHERE m.ended IS NOT 'forgotten'",
        (wanted, place.number),
    )
    return frozenset(row[0] for row in rows)


def _saved_before(
    db: sqlite3.Connection, place: Place | None, memory_id: str, now: datetime
) -> tuple[bool, MemoryView | None]:
    if place is None or not existing(db, place, [memory_id]):
        return False, None
    try:
        return True, views.one(db, place, memory_id, now).memory
    except NotFound:
        return True, None


def _erase(db: sqlite3.Connection, scope: Scope) -> None:
    place = places.find(db, scope)
    if place is not None:
        places.remove(db, place)
