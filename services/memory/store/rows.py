"""A memory as a row of the database."""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

import msgspec

from vigil.contracts import Memory, MemoryType

from .. import named
from ..rules import facets
from ..rules.instants import micros, micros_or_none

_SAVE: Final = """
    INSERT INTO memories (
        num, scope, id, changed_seq, type, importance, source, stability, thread, created_at,
        occurred_at, happened_at, expires_at, valid_from, valid_to, is_tainted, provenance, content
    ) VALUES (
        :num, :scope, :id, :num, :type, :importance, :source, :stability, :thread, :created_at,
        :occurred_at, :happened_at, :expires_at, :valid_from, :valid_to, :is_tainted, :provenance,
        :content
    )
    ON CONFLICT (scope, id) DO NOTHING
"""


_FOUND_BY: Final = """
    SELECT ended, source, type, thread, is_tainted, coalesce(terms, '') AS terms,
        coalesce(words, x'') AS words
    FROM memories LEFT JOIN features USING (num) WHERE num = ?
"""


class FoundBy(NamedTuple):
    """What a memory can be found by, and how it ended."""

    ended: str | None
    source: str
    type: MemoryType
    thread: str
    is_tainted: int
    terms: str
    words: bytes

    @property
    def facets(self) -> str:
        return facets.of(self.source, self.type, self.thread, is_tainted=bool(self.is_tainted))


def found_by(db: sqlite3.Connection, num: int) -> FoundBy:
    """Return what a memory that exists can be found by."""
    (found,) = named.read(FoundBy, db.execute(_FOUND_BY, (num,)))
    return found


def insert(db: sqlite3.Connection, scope: int, num: int, memory: Memory) -> bool:
    """Insert a memory; return whether its id is new in that scope."""
    return bool(db.execute(_SAVE, _row(scope, num, memory)).rowcount)


def _row(scope: int, num: int, memory: Memory) -> dict[str, object]:
    """Return what is stored of a memory, by the columns' names."""
    created_at = micros(memory.created_at)
    occurred_at = micros_or_none(memory.occurred_at)
    return {
        "num": num,
        "scope": scope,
        "id": memory.id,
        "type": memory.type,
        "importance": memory.importance,
        "source": memory.source,
        "stability": memory.stability,
        "thread": memory.thread,
        "created_at": created_at,
        "occurred_at": occurred_at,
        "happened_at": created_at if occurred_at is None else occurred_at,
        "expires_at": micros_or_none(memory.expires_at),
        "valid_from": micros_or_none(memory.valid_from),
        "valid_to": micros_or_none(memory.valid_to),
        "is_tainted": int(memory.is_tainted),
        "provenance": msgspec.json.encode(memory.provenance).decode(),
        "content": memory.content,
    }
