"""A memory as a row of the database."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from vigil.contracts import Memory

from ..rules.instants import micros, micros_or_none

_SAVE: Final = """
    INSERT INTO memories (
        num, scope, id, changed_seq, type, importance, source, stability, thread, created_at,
        occurred_at, happened_at, expires_at, valid_from, valid_to, is_tainted, provenance, content
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, id) DO NOTHING
"""


def insert(db: sqlite3.Connection, scope: int, num: int, memory: Memory) -> bool:
    """Insert a memory; return whether its id is news in that scope."""
    return bool(db.execute(_SAVE, _row(scope, num, memory)).rowcount)


def _row(scope: int, num: int, memory: Memory) -> tuple[object, ...]:
    created_at = micros(memory.created_at)
    occurred_at = micros_or_none(memory.occurred_at)
    return (
        num,
        scope,
        memory.id,
        num,
        memory.type,
        memory.importance,
        memory.source,
        memory.stability,
        memory.thread,
        created_at,
        occurred_at,
        created_at if occurred_at is None else occurred_at,
        micros_or_none(memory.expires_at),
        micros_or_none(memory.valid_from),
        micros_or_none(memory.valid_to),
        int(memory.is_tainted),
        msgspec.json.encode(memory.provenance).decode(),
        memory.content,
    )
