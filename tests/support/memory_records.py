"""Records of MEMORIES for tests of the store: numbered memories of ann, at fixed times."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from services.memory.store import places
from services.memory.store.fold import Entry
from services.memory.store.store import Store
from vigil.contracts import (
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryLink,
    MemorySaved,
)
from vigil.subjects import Scope

ANN = Scope("vigil", "ann")
BOB = Scope("vigil", "bob")
T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def memory_id(number: int) -> str:
    return f"{number:032x}"


def ids(*numbers: int) -> tuple[str, ...]:
    return tuple(map(memory_id, numbers))


def at(number: float) -> datetime:
    """So many minutes after the first one."""
    return T0 + timedelta(minutes=number)


def memory(number: int, content: str = "", **fields: Any) -> Memory:
    given = {"created_at": at(number), "source": "api"} | fields
    return Memory(id=memory_id(number), content=content or f"memory {number}", **given)


def edge(one: int, other: int, weight: float = 0.5, **fields: Any) -> MemoryLink:
    return MemoryLink(from_id=memory_id(one), to_id=memory_id(other), weight=weight, **fields)


def about(seq: int, scope: Scope = ANN) -> dict[str, Any]:
    return {
        "id": f"record-{seq}", "agent": scope.agent, "owner": scope.owner, "at": at(seq),
        "by": "user:ann",
    }  # fmt: skip


def saved(
    seq: int, content: str = "", *, number: int = 0, scope: Scope = ANN, **fields: Any
) -> Entry:
    """The memory with the number of its record, unless told otherwise."""
    edges = fields.pop("edges", ())
    made = memory(number or seq, content, **fields)
    record = MemorySaved(**about(seq, scope), memory=made, edges=edges)
    return Entry(seq, record, made.content.lower(), (number or seq).to_bytes(4, "little"))


def forgotten(seq: int, *numbers: int, scope: Scope = ANN, reason: Any = "asked") -> Entry:
    return Entry(seq, MemoryForgotten(**about(seq, scope), memory_ids=ids(*numbers), reason=reason))


def merged(seq: int, *numbers: int, number: int = 0, scope: Scope = ANN, **fields: Any) -> Entry:
    given = {"created_at": at(seq), "type": "summary"} | fields
    summary = memory(number or seq, f"summary {seq}", **given)
    record = MemoriesMerged(**about(seq, scope), memory=summary, merged_ids=ids(*numbers))
    return Entry(seq, record, summary.content, b"")


def replaced(
    seq: int,
    by: int,
    *numbers: int,
    is_same: bool = True,
    is_wider: bool = False,
    scope: Scope = ANN,
) -> Entry:
    made = {"by_id": memory_id(by), "memory_ids": ids(*numbers), "is_same": is_same}
    made["is_wider"] = is_wider
    return Entry(seq, MemoriesReplaced(**about(seq, scope), **made))


def associated(seq: int, *edges: MemoryLink, through: int = 0, scope: Scope = ANN) -> Entry:
    return Entry(seq, MemoriesAssociated(**about(seq, scope), edges=edges, through=through))


def accessed(seq: int, *numbers: int, scope: Scope = ANN) -> Entry:
    return Entry(seq, MemoriesAccessed(**about(seq, scope), memory_ids=ids(*numbers)))


def undone(
    seq: int, *numbers: int, source: str = "api", restored: tuple[int, ...] = (), scope: Scope = ANN
) -> Entry:
    record = MemoriesUndone(
        **about(seq, scope), source=source, memory_ids=ids(*numbers), restored_ids=ids(*restored)
    )
    return Entry(seq, record)


WITHOUT_LENGTHS: Final = (
    "DROP TRIGGER features_made; DROP TRIGGER features_gone; DROP TABLE lengths;"
)
"""What takes the sixth script of a file's schema back."""


async def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, and every word of the full text with where it stands.

    How full text cuts its index into segments depends on batches; what it says doesn't.
    """
    return await store.read(_dump)


def _dump(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    tables = (
        "meta",
        "scopes",
        "memories",
        "features",
        "lengths",
        "edges",
        "provenance",
        "merges",
        "counts",
        "said",
        "replaced",
    )
    found = {
        name: sorted(db.execute(f"SELECT * FROM {name}").fetchall(), key=repr)  # noqa: S608
        for name in tables
    }
    for scope in places.everywhere(db):
        place = places.find(db, scope)
        assert place is not None
        found[place.text] = _words(db, place.text)
    return found


def _words(db: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    words = f"temp.words_of_{table}"
    db.execute("PRAGMA query_only = OFF")
    db.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {words} USING fts5vocab(main, {table}, 'instance')"
    )
    db.execute("PRAGMA query_only = ON")
    sql = f'SELECT term, doc, col, "offset" FROM {words} ORDER BY 1, 2, 3, 4'  # noqa: S608
    return db.execute(sql).fetchall()
