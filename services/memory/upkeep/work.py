"""What the passes have to look at. Plain functions on a reading connection, like :mod:`.views`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from vigil.contracts import Memory, MemoryType

from ..store import views
from ..store.instants import DAY, instant, instant_or_none, micros
from ..store.places import Place
from . import decide
from .decide import Kept

NOTES_MAX: Final = 10_000
"""That one pass may merge in one scope; the others are for the next one."""


class Unlooked(NamedTuple):
    """A memory that no association pass has looked at."""

    num: int
    id: str
    vector: bytes | None
    is_standing: bool


class Known(NamedTuple):
    """What SQLite says of memories that the index found."""

    numbers: dict[str, int]
    """Of those that stand."""
    linked: frozenset[str]
    """Those with an association with the one that was looked at, of the kind that a pass makes."""


def looked_through(db: sqlite3.Connection, place: Place) -> int:
    """Return the sequence up to which everything has been looked at."""
    found: int = db.execute(
        "SELECT looked_through FROM scopes WHERE scope = ?", (place.number,)
    ).fetchone()[0]
    return found


def unlooked(
    db: sqlite3.Connection, place: Place, after: int, until: int, limit: int, now: datetime
) -> list[Unlooked]:
    """Return memories that were saved after one sequence and up to another, oldest first."""
    rows = db.execute(
        """SELECT m.num, m.id, f.vector,
            m.ended IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?)
        FROM memories m LEFT JOIN features f USING (num)
        WHERE m.scope = ? AND m.num > ? AND m.num <= ? ORDER BY m.num LIMIT ?""",
        (micros(now), place.number, after, until, limit),
    )
    return [Unlooked(num, i, vector, bool(stands)) for num, i, vector, stands in rows]


def known(
    db: sqlite3.Connection, place: Place, num: int, ids: Sequence[str], now: datetime
) -> Known:
    """Return what is known of `ids`, which were found to be near `num`."""
    rows = db.execute(
        """SELECT m.id, m.num, EXISTS (
            SELECT 1 FROM edges e WHERE e.relation IN ('related_to', 'updates') AND (
                e.from_num = m.num AND e.to_num = :num OR e.from_num = :num AND e.to_num = m.num))
        FROM json_each(:ids) w CROSS JOIN memories m ON m.scope = :scope AND m.id = w.value
        WHERE m.ended IS NULL AND (m.expires_at IS NULL OR m.expires_at > :now)""",
        {"num": num, "ids": _json(ids), "scope": place.number, "now": micros(now)},
    ).fetchall()
    linked = frozenset(i for i, _, is_linked in rows if is_linked)
    return Known({i: other for i, other, _ in rows}, linked)


def fading(db: sqlite3.Connection, place: Place, now: datetime) -> list[Kept]:
    """Return what stands and has expired, or has so little left that it may have to go."""
    rows = db.execute(
        f"""SELECT m.id, m.type, m.importance, m.created_at, m.accessed_at, m.expires_at
        FROM memories m
        WHERE m.scope = :scope AND m.ended_at IS NULL AND (
            m.expires_at <= :now OR m.created_at < :old AND {views.DECAYED} < :least)""",  # noqa: S608
        {
            "scope": place.number,
            "now": micros(now),
            "old": micros(now) - decide.PRUNE_AGE.days * DAY,
            "least": decide.PRUNE_BELOW,
        },
    )
    return [_kept(*row) for row in rows]


def _kept(
    memory_id: str,
    kind: MemoryType,
    importance: float,
    created_at: int,
    accessed_at: int | None,
    expires_at: int | None,
) -> Kept:
    return Kept(
        id=memory_id,
        type=kind,
        importance=importance,
        created_at=instant(created_at),
        accessed_at=instant_or_none(accessed_at),
        expires_at=instant_or_none(expires_at),
    )


def notes(
    db: sqlite3.Connection, place: Place, pruned: Iterable[str], now: datetime
) -> list[Memory]:
    """Return volatile notes that stand and are old enough to be merged, but for those pruned."""
    rows = db.execute(
        f"""SELECT {views.COLUMNS} FROM memories m
        WHERE m.scope = :scope AND m.ended_at IS NULL AND m.stability = 'volatile'
            AND m.created_at < :old AND m.id NOT IN (SELECT value FROM json_each(:pruned))
        ORDER BY m.happened_at, m.id LIMIT :limit""",  # noqa: S608 - columns of ours
        {
            "scope": place.number,
            "old": micros(now) - decide.MERGE_AGE.days * DAY,
            "pruned": _json(list(pruned)),
            "limit": NOTES_MAX,
        },
    )
    return [views.view(row, now) for row in rows]


def existing(db: sqlite3.Connection, place: Place, ids: Sequence[str]) -> frozenset[str]:
    """Return those ids that were ever saved in the scope, whatever became of them."""
    rows = db.execute(
        "SELECT m.id FROM json_each(?) w CROSS JOIN memories m ON m.scope = ? AND m.id = w.value",
        (_json(ids), place.number),
    )
    return frozenset(row[0] for row in rows)


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
