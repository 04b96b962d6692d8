"""What the vector index must be told of: memories whose text is new, or that stand no more."""

from __future__ import annotations

import sqlite3

import msgspec

from vigil.contracts import MemoryType
from vigil.subjects import Scope

from ..rules.instants import seconds
from . import views


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


def since(db: sqlite3.Connection, after: int, limit: int) -> list[Changed]:
    """Return what changed after that sequence; all of a record or nothing of it."""
    last = db.execute(
        "SELECT max(changed_seq) FROM (SELECT changed_seq FROM memories"
        " WHERE changed_seq > ? ORDER BY changed_seq LIMIT ?)",
        (after, limit),
    ).fetchone()[0]
    rows = db.execute(
        """SELECT m.num, m.id, s.agent, s.owner, m.changed_seq, m.content, f.vector, m.source,
            m.type, m.thread, m.created_at, m.happened_at,
            CASE WHEN m.ended IN ('merged', 'replaced') THEN NULL ELSE m.ended_at END, m.is_tainted
        FROM memories m JOIN scopes s USING (scope) LEFT JOIN features f USING (num)
        WHERE m.changed_seq > ? AND m.changed_seq <= ? ORDER BY m.changed_seq, m.num""",
        (after, last),
    )
    return [_changed_of(row) for row in rows]


def _changed_of(row: views.Row) -> Changed:
    (
        num, memory_id, agent, owner, changed_seq, content, vector, source, kind, thread,
        created_at, happened_at, ended_at, is_tainted,
    ) = row  # fmt: skip
    return Changed(
        num=num,
        id=memory_id,
        scope=Scope(agent, owner),
        changed_seq=changed_seq,
        content=content,
        vector=vector,
        source=source,
        type=kind,
        thread=thread,
        created_at=seconds(created_at),
        happened_at=seconds(happened_at),
        ended_at=None if ended_at is None else seconds(ended_at),
        is_tainted=bool(is_tainted),
    )
