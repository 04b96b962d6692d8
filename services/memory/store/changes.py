"""What the vector index must be told of: memories whose text is new, or that stand no more."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import msgspec

from vigil.contracts import MemoryType
from vigil.subjects import Scope

from .. import named
from ..rules.instants import seconds


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What the vector index must know of a memory. Instants are epoch seconds.

    What was forgotten on request has no content and no vector any more, and `ended_at` 0: its point
    has to be written over, with any vector, and is then found by no search.
    """

    num: int
    id: str
    scope: Scope
    changed_seq: int
    content: str
    vector: bytes | None
    """None: nobody has made it yet."""
    source: str
    type: MemoryType
    thread: str
    created_at: float
    happened_at: float
    ended_at: float | None
    """None also for what a search may find behind what took its place."""
    is_tainted: bool

    @property
    def is_forgotten(self) -> bool:
        return self.ended_at == 0


class _ChangedRow(NamedTuple):
    num: int
    id: str
    agent: str
    owner: str
    changed_seq: int
    content: str
    vector: bytes | None
    source: str
    type: MemoryType
    thread: str
    created_at: int
    happened_at: int
    is_tainted: int
    ended_at: int | None


def since(db: sqlite3.Connection, after: int, limit: int) -> list[Changed]:
    """Return what changed after that sequence; all of a record or nothing of it."""
    last = db.execute(
        "SELECT max(changed_seq) FROM (SELECT changed_seq FROM memories"
        " WHERE changed_seq > ? ORDER BY changed_seq LIMIT ?)",
        (after, limit),
    ).fetchone()[0]
    rows = db.execute(
        """SELECT m.num, m.id, s.agent, s.owner, m.changed_seq, m.content, f.vector, m.source,
            m.type, m.thread, m.created_at, m.happened_at, m.is_tainted,
            CASE WHEN m.ended IN ('merged', 'replaced') THEN NULL ELSE m.ended_at END AS ended_at
        FROM memories m JOIN scopes s USING (scope) LEFT JOIN features f USING (num)
        WHERE m.changed_seq > ? AND m.changed_seq <= ? ORDER BY m.changed_seq, m.num""",
        (after, last),
    )
    return [_changed_of(row) for row in named.read(_ChangedRow, rows)]


def _changed_of(row: _ChangedRow) -> Changed:
    return Changed(
        num=row.num,
        id=row.id,
        scope=Scope(row.agent, row.owner),
        changed_seq=row.changed_seq,
        content=row.content,
        vector=row.vector,
        source=row.source,
        type=row.type,
        thread=row.thread,
        created_at=seconds(row.created_at),
        happened_at=seconds(row.happened_at),
        ended_at=None if row.ended_at is None else seconds(row.ended_at),
        is_tainted=bool(row.is_tainted),
    )
