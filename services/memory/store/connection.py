"""A connection to the replica's database: aiosqlite, with whole transactions as one call.

aiosqlite runs each statement on the connection's own thread, and the way there and back costs
more than most statements. So what belongs together is a function that gets the plain connection,
and runs there as a whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

import aiosqlite

from vigil.errors import Unavailable

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_BUSY_TIMEOUT_S: Final = 10.0
_CACHE_KIB: Final = 64 * 1024
_PASSING: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""What a full disk is told as: FULL by the file itself, the others by the log beside it."""


class StoreConnection(aiosqlite.Connection):
    """One connection and its thread. All that `aiosqlite` has, and :meth:`run`."""

    async def run(self, work: Work[T]) -> T:
        """Run `work` on the connection's thread; whatever comes later waits for it.

        A caller that is cancelled meanwhile doesn't stop it.

        Raises:
            Unavailable: the disk is full, or fails; nothing of it is there, and it may be repeated.
        """
        try:
            return cast("T", await self._execute(work, self._conn))  # type: ignore[no-untyped-call]
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _PASSING:
                raise
            raise Unavailable(f"the database can't be written: {error}") from error

    async def transact(self, work: Work[T]) -> T:
        """Run `work` in one write transaction; it is undone if `work` raises."""
        return await self.run(lambda db: _within(db, "BEGIN IMMEDIATE", work))

    async def snapshot(self, work: Work[T]) -> T:
        """Run `work` on the state of one moment, whatever is written meanwhile."""
        return await self.run(lambda db: _within(db, "BEGIN", work))


def _within(db: sqlite3.Connection, begin: str, work: Work[T]) -> T:
    db.execute(begin)
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


async def connect(path: Path, *, is_reader: bool = False) -> StoreConnection:
    """Open the file. Raises: sqlite3.DatabaseError if it isn't a database."""
    connection = StoreConnection(lambda: _open(path, is_reader=is_reader), iter_chunk_size=64)
    await connection
    return connection


def _open(path: Path, *, is_reader: bool) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(db, is_reader=is_reader)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, *, is_reader: bool) -> None:
    """A lost tail is applied again, since position and data go together: NORMAL will do."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "temp_store = MEMORY",
        f"cache_size = -{_CACHE_KIB}",
        f"query_only = {'ON' if is_reader else 'OFF'}",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
