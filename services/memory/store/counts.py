"""In how many memories of a scope each token stands, kept so that a recall needn't count them all.

Whoever reads counts on from `through`. The fold counts, a thousand memories at once: a row is
128 kB, too much to write with each save. So it's made of the log alone, as every table here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ..numeric import np, npt
from .places import Place

Counts: TypeAlias = "npt.NDArray[np.uint32]"

COUNTED_FROM: Final = 1000
"""Memories to count that are worth writing a row."""
COUNTED_MAX: Final = 5000
"""Of one record's transaction; the others are for the next one."""


class Counted(NamedTuple):
    """What is counted of a scope."""

    through: int
    """The last memory that is (`memories.num`)."""
    memories: int
    """That say anything."""
    tokens: Counts
    """By token; those beyond its end stand nowhere."""


def stored(db: sqlite3.Connection, place: Place) -> Counted:
    """Return what is kept of a scope; nothing, if it's small."""
    row = db.execute(
        "SELECT through, memories, tokens FROM counts WHERE scope = ?", (place.number,)
    ).fetchone()
    if row is None:
        return Counted(0, 0, np.zeros(0, dtype=np.uint32))
    through, memories, tokens = row
    return Counted(through, memories, np.frombuffer(tokens, np.uint32))


def tokens_after(
    db: sqlite3.Connection, place: Place, num: int, limit: int = -1
) -> Iterator[tuple[int, bytes]]:
    """Return number and tokens of what was saved after `num`, in order, also of what has ended."""
    yield from db.execute(
        "SELECT m.num, f.words FROM memories m JOIN features f ON f.num = m.num"
        " WHERE m.scope = ? AND m.num > ? ORDER BY m.num LIMIT ?",
        (place.number, num, limit),
    )


def uncounted(db: sqlite3.Connection, place: Place) -> int:
    """Return how many memories were saved in a scope since it was counted."""
    found: int = db.execute(
        "SELECT uncounted FROM scopes WHERE scope = ?", (place.number,)
    ).fetchone()[0]
    return found


def set_uncounted(db: sqlite3.Connection, place: Place, number: int) -> None:
    db.execute("UPDATE scopes SET uncounted = ? WHERE scope = ?", (number, place.number))


def count(db: sqlite3.Connection, place: Place) -> int:
    """Count what was saved since the last time, up to `COUNTED_MAX`; return how many there were."""
    known = stored(db, place)
    found = list(tokens_after(db, place, known.through, COUNTED_MAX))
    if found:
        added = _sum([tokens for _, tokens in found])
        memories = known.memories + sum(1 for _, tokens in found if tokens)
        _keep(db, place, Counted(found[-1][0], memories, _total(known.tokens, added)))
    return len(found)


def forget(db: sqlite3.Connection, place: Place, forgotten: Sequence[tuple[int, bytes]]) -> None:
    """Take numbers and tokens of memories out of what is kept, as if they had never been."""
    known = stored(db, place)
    gone = [tokens for num, tokens in forgotten if num <= known.through and tokens]
    if gone:
        left = known.tokens.copy()
        removed = _sum(gone)
        left[: len(removed)] -= removed
        _keep(db, place, Counted(known.through, known.memories - len(gone), left))


def _keep(db: sqlite3.Connection, place: Place, counted: Counted) -> None:
    db.execute(
        "INSERT INTO counts (scope, through, memories, tokens) "
        " VALUES (:scope, :through, :memories, :tokens)"
        " ON CONFLICT (scope) DO UPDATE SET through = excluded.through,"
        " memories = excluded.memories, tokens = excluded.tokens",
        {
            "scope": place.number,
            "through": counted.through,
            "memories": counted.memories,
            "tokens": counted.tokens.tobytes(),
        },
    )


def _sum(tokens: Sequence[bytes]) -> Counts:
    found = np.frombuffer(b"".join(tokens), np.uint32)
    return np.bincount(found).astype(np.uint32)


def _total(one: Counts, other: Counts) -> Counts:
    total: Counts = np.zeros(max(len(one), len(other)), dtype=np.uint32)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
