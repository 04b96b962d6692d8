"""Finds what says the same as what was saved, or how it was before, and plans which of it stands.

Plain functions on a reading connection, like :mod:`.work`; :mod:`.sameness` decides.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from ..rules import sameness
from ..rules.instants import micros
from ..rules.sameness import Supersession
from . import views
from .places import Place

COMPARED_MAX: Final = 50
"""Memories that one is compared with, the newest."""
JOINED_AT_ONCE: Final = 2_000
"""Memories that one pass compares with others; the next goes on behind them."""
_HAVING: Final = """SELECT 1 FROM said s JOIN memories m ON m.num = s.num
    WHERE s.scope = ? AND s.key = ? AND m.id <> ? LIMIT 1"""
_MEETING: Final = """SELECT DISTINCT m.num FROM said s
    JOIN said o ON o.scope = s.scope AND o.key = s.key JOIN memories m ON m.num = o.num
    WHERE s.num = :num AND m.scope = :scope AND m.num <> :num
        AND m.ended IS NULL AND (m.expires_at IS NULL OR m.expires_at > :now)
    ORDER BY m.num DESC LIMIT :limit"""
_LINKED: Final = """SELECT m.id FROM edges e JOIN memories m ON m.num = e.to_num
    WHERE e.from_num = ?1 AND e.relation = 'updates'
    UNION SELECT m.id FROM edges e JOIN memories m ON m.num = e.from_num
    WHERE e.to_num = ?1 AND e.relation = 'updates'"""
_NEXT: Final = """SELECT m.num, m.changed_seq FROM memories m
    WHERE m.scope = :scope AND m.changed_seq > :after
        AND m.ended IS NULL AND (m.expires_at IS NULL OR m.expires_at > :now) AND EXISTS (
            SELECT 1 FROM said s JOIN said o ON o.scope = s.scope AND o.key = s.key
            WHERE s.num = m.num AND o.num <> m.num)
    ORDER BY m.changed_seq, m.num LIMIT :limit"""


class Joined(NamedTuple):
    """What a pass found."""

    found: list[Supersession]
    through: int
    """Everything that this record or one before it saved, or had stand again, was compared."""


def meets(db: sqlite3.Connection, place: Place | None, memory_id: str, keys: Sequence[str]) -> bool:
    """Whether a memory but that one has one of these keys."""
    return place is not None and any(
        db.execute(_HAVING, (place.number, key, memory_id)).fetchone() for key in keys
    )


def of_one(
    db: sqlite3.Connection, place: Place | None, memory_id: str, now: datetime
) -> list[Supersession]:
    """Return what a memory that was just saved means for what stands, or that for it."""
    if place is None:
        return []
    about = (place.number, memory_id)
    row = db.execute("SELECT num FROM memories WHERE scope = ? AND id = ?", about).fetchone()
    return [] if row is None else _of(db, place, row[0], now)


def of_all(db: sqlite3.Connection, place: Place, after: int, now: datetime) -> Joined:
    """Compare what was saved, or stands again, since a record with all that stands: what nobody has
    joined, since it was saved in two replicas at once, or before memories were compared."""
    params = {"scope": place.number, "after": after, "now": micros(now), "limit": JOINED_AT_ONCE}
    rows = db.execute(_NEXT, params).fetchall()
    found: list[Supersession] = []
    gone: set[str] = set()
    for num, _ in rows:
        for one in _of(db, place, num, now):
            if one.by_id in gone or not gone.isdisjoint(one.memory_ids):
                continue
            if not one.is_beside:
                gone.update(one.memory_ids)
            elif one in found:
                continue
            found.append(one)
    if len(rows) == JOINED_AT_ONCE:
        first, last = rows[0][1], rows[-1][1]
        return Joined(found, last if first == last else last - 1)  # more of the last may be left
    newest = "SELECT max(changed_seq) FROM memories WHERE scope = ?"
    return Joined(found, db.execute(newest, (place.number,)).fetchone()[0] or after)


def _of(db: sqlite3.Connection, place: Place, num: int, now: datetime) -> list[Supersession]:
    params = {"scope": place.number, "num": num, "now": micros(now), "limit": COMPARED_MAX}
    nums = [other for (other,) in db.execute(_MEETING, params)]
    if not nums:
        return []
    found = views.by_numbers(db, place, [num, *nums], now)
    new = found.get(num)
    if new is None or new.ended is not None:
        return []
    others = [found[other] for other in nums if other in found]
    newer = frozenset(other.id for other in others if other.seq > num)
    linked = frozenset(other for (other,) in db.execute(_LINKED, (num,)))
    return sameness.replacements(new, others, newer, linked)
