"""What the passes have to look at. Plain functions on a reading connection, like :mod:`.views`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from vigil.contracts import Memory, MemoryType

from .. import named
from ..rules import decide, merge, recurrence
from ..rules.decide import Kept
from ..rules.instants import DAY, instant, instant_or_none, micros
from ..rules.recurrence import Remark
from . import views
from .places import Place

RECENT_MAX: Final = 2_000
"""Memories among which one pass looks for what came up again."""
NOTES_MAX: Final = 10_000
"""That one pass may merge in one scope; the others are for the next one."""


class Unassociated(NamedTuple):
    """A memory that no association pass has compared."""

    num: int
    id: str
    vector: bytes | None
    is_standing: int


class Known(NamedTuple):
    """What SQLite says of memories that the index found."""

    ids: dict[int, str]
    """Of those that stand, by their numbers."""
    linked: frozenset[str]
    """Those with an association with the one that was looked at, of the kind that a pass makes."""


class _Fading(NamedTuple):
    id: str
    type: MemoryType
    importance: float
    created_at: int
    accessed_at: int | None
    expires_at: int | None


class _Said(NamedTuple):
    id: str
    num: int
    thread: str
    content: str
    happened_at: int


def associated_through(db: sqlite3.Connection, place: Place) -> int:
    """Return the sequence up to which everything has been looked at."""
    found: int = db.execute(
        "SELECT looked_through FROM scopes WHERE scope = ?", (place.number,)
    ).fetchone()[0]
    return found


def unassociated(
    db: sqlite3.Connection, place: Place, after: int, until: int, limit: int, now: datetime
) -> list[Unassociated]:
    """Return memories that were saved after one sequence and up to another, oldest first."""
    rows = db.execute(
        """SELECT m.num, m.id, f.vector, m.ended IS NULL AND m.source <> :observed
                AND (m.expires_at IS NULL OR m.expires_at > :now) AS is_standing
        FROM memories m LEFT JOIN features f USING (num)
        WHERE m.scope = :scope AND m.num > :after AND m.num <= :until
        ORDER BY m.num LIMIT :limit""",
        {
            "observed": recurrence.SOURCE,
            "now": micros(now),
            "scope": place.number,
            "after": after,
            "until": until,
            "limit": limit,
        },
    )
    return named.read(Unassociated, rows)


def known(
    db: sqlite3.Connection, place: Place, num: int, near: Sequence[int], now: datetime
) -> Known:
    """Return what is known of those that were found to be near `num`."""
    rows = db.execute(
        """SELECT m.id, m.num, EXISTS (
            SELECT 1 FROM edges e WHERE e.relation IN ('related_to', 'updates') AND (
                e.from_num = m.num AND e.to_num = :num OR e.from_num = :num AND e.to_num = m.num))
        FROM json_each(:near) w CROSS JOIN memories m ON m.num = w.value
        WHERE m.scope = :scope AND m.ended IS NULL AND (m.expires_at IS NULL OR m.expires_at > :now)
            AND m.source <> :observed""",
        {
            "num": num,
            "near": _json(near),
            "scope": place.number,
            "now": micros(now),
            "observed": recurrence.SOURCE,
        },
    ).fetchall()
    linked = frozenset(i for i, _, is_linked in rows if is_linked)
    return Known({other: i for i, other, _ in rows}, linked)


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
    return [
        Kept(
            id=row.id,
            type=row.type,
            importance=row.importance,
            created_at=instant(row.created_at),
            accessed_at=instant_or_none(row.accessed_at),
            expires_at=instant_or_none(row.expires_at),
        )
        for row in named.read(_Fading, rows)
    ]


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
            "old": micros(now) - merge.MERGE_AGE.days * DAY,
            "pruned": _json(list(pruned)),
            "limit": NOTES_MAX,
        },
    )
    return [views.view(row, now) for row in rows]


def recent(db: sqlite3.Connection, place: Place, now: datetime) -> list[Remark]:
    """Return what people's conversations left lately that stands, the newest first."""
    rows = db.execute(
        """SELECT id, num, thread, content, happened_at FROM memories
        WHERE scope = :scope AND ended IS NULL AND (expires_at IS NULL OR expires_at > :now)
            AND happened_at > :since AND thread <> '' AND substr(thread, 1, 1) <> '_'
            AND NOT is_tainted AND type NOT IN ('identity', 'summary', 'observation')
        ORDER BY happened_at DESC, num DESC LIMIT :limit""",
        {
            "scope": place.number,
            "now": micros(now),
            "since": micros(now - recurrence.WITHIN),
            "limit": RECENT_MAX,
        },
    )
    return [
        Remark(
            id=row.id,
            num=row.num,
            thread=row.thread,
            content=row.content,
            at=instant(row.happened_at),
        )
        for row in named.read(_Said, rows)
    ]


def near(db: sqlite3.Connection, place: Place, said: Sequence[Remark]) -> list[tuple[str, str]]:
    """Return which of them are associated by what they say."""
    rows = db.execute(
        """SELECT a.id, b.id FROM json_each(:nums) w CROSS JOIN edges e ON e.from_num = w.value
        JOIN memories a ON a.num = e.from_num JOIN memories b ON b.num = e.to_num
        WHERE e.scope = :scope AND e.relation IN ('related_to', 'updates')""",
        {"nums": _json([one.num for one in said]), "scope": place.number},
    )
    return [(one, other) for one, other in rows]


def observed(db: sqlite3.Connection, place: Place) -> list[tuple[str, ...]]:
    """Return the members of each observation that was ever made."""
    rows = db.execute(
        "SELECT provenance FROM memories WHERE scope = ? AND source = ?",
        (place.number, recurrence.SOURCE),
    )
    return [msgspec.json.decode(row[0], type=tuple[str, ...]) for row in rows]


def existing(db: sqlite3.Connection, place: Place, ids: Sequence[str]) -> frozenset[str]:
    """Return those ids that were ever saved in the scope, whatever became of them."""
    rows = db.execute(
        "SELECT m.id FROM json_each(?) w CROSS JOIN memories m ON m.scope = ? AND m.id = w.value",
        (_json(ids), place.number),
    )
    return frozenset(row[0] for row in rows)


def _json(values: Sequence[str] | Sequence[int]) -> str:
    return msgspec.json.encode(values).decode()
