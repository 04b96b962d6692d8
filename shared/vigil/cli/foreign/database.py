"""Hermes' database of conversations (*Session storage*), read as its own export writes it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec


def exported(path: Path) -> str:
    """Return a line for each conversation: the row of its session, and its messages.

    What was undone, or only overheard, isn't among these. What was compacted is, in its place.

    Raises: sqlite3.Error: it can't be read, or is no such database.
    """
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        lines = []
        for session in db.execute("SELECT id, * FROM sessions ORDER BY started_at"):
            rows = db.execute(
                "SELECT id, role, content, timestamp, * FROM messages"
                " WHERE session_id = ? ORDER BY timestamp, id",
                (session["id"],),
            )
            kept = {name: dict(session).get(name) for name in ("id", "title", "source")}
            lines.append(msgspec.json.encode(kept | {"messages": list(_shown(map(dict, rows)))}))
    return b"\n".join(lines).decode()


def _shown(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what was said, once: what was kept when a conversation was compacted is there twice."""
    known: set[tuple[Any, ...]] = set()
    for row in rows:
        is_shown = row.get("active", 1) or row.get("compacted", 0)
        fields = {name: row[name] for name in ("role", "content", "timestamp")}
        if is_shown and not row.get("observed", 0) and tuple(fields.values()) not in known:
            known.add(tuple(fields.values()))
            yield fields | {"id": row["id"]}
