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
    ) VALUES (
        :num, :scope, :id, :num, :type, :importance, :source, :stability, :thread, :created_at,
        :occurred_at, :happened_at, :expires_at, :valid_from, :valid_to, :is_tainted, :provenance,
        :content
    )
    ON CONFLICT (scope, id) DO NOTHING
"""


def insert(db: sqlite3.Connection, scope: int, num: int, memory: Memory) -> bool:
    """Insert a memory; return whether its id is news in that scope."""
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
