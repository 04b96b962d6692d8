"""What stands in the place of what, as rows: the part of the fold about replacing (SPEC M-5, M-9).

Rows stay when a memory ends, so that an undo finds what stands again. They hold over several steps:
if Iris takes the place of Daisy, which had that of Marigold, it has Marigold's, too, and an undo of
Daisy alone brings nothing back.

A memory that says the same as one goes when that is forgotten; one that says more stays, since it
was said by itself, and what says less stands again when that one is forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from vigil.contracts import MemoriesReplaced, Memory

from ..rules import sameness
from .places import Place

_ROW: Final = """INSERT INTO replaced (scope, newer, older, is_same, is_wider)
    VALUES (:scope, :newer, :older, :is_same, :is_wider) ON CONFLICT (newer, older)
    DO UPDATE SET is_same = excluded.is_same, is_wider = excluded.is_wider"""
_BEFORE: Final = """INSERT INTO replaced (scope, newer, older, is_same, is_wider)
    SELECT :scope, :newer, r.older, r.is_same AND :is_same,
        (r.is_same OR r.is_wider) AND (:is_same OR :is_wider) AND NOT (r.is_same AND :is_same)
            AS wider
    FROM replaced r JOIN memories n ON n.num = :newer JOIN memories o ON o.num = r.older
    WHERE r.newer = :older AND r.older <> :newer AND (n.is_tainted = o.is_tainted OR NOT wider)
    ON CONFLICT (newer, older) DO NOTHING"""
_OLDER: Final = """SELECT o.num FROM replaced r JOIN memories n ON n.num = r.newer
    JOIN memories o ON o.num = r.older AND o.superseded_by = n.id
    WHERE r.newer = ?1 AND (r.is_wider OR NOT ?2) AND o.ended = 'replaced' ORDER BY o.num"""
_HEIR: Final = """SELECT n.id FROM replaced r JOIN memories n ON n.num = r.newer
    WHERE r.older = ? AND n.ended IS NULL ORDER BY n.num DESC LIMIT 1"""
_MAY_REPLACE: Final = """SELECT n.is_tainted = o.is_tainted
        OR (n.is_tainted < o.is_tainted AND NOT ?3)
    FROM memories n, memories o WHERE n.num = ?1 AND o.num = ?2"""
_SAME: Final = """SELECT older FROM replaced WHERE newer = ?1 AND is_same
    UNION SELECT newer FROM replaced WHERE older = ?1 AND is_same"""


def note_said(db: sqlite3.Connection, place: Place, owner: str, num: int, memory: Memory) -> None:
    """Note by what a memory is found that may say the same."""
    db.executemany(
        "INSERT INTO said (scope, key, num) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(place.number, key, num) for key in sameness.keys(memory.content, memory.type, owner)],
    )


def may_replace(db: sqlite3.Connection, newer: int, older: int, *, is_wider: bool) -> bool:
    """Whether one may stand in the place of another: what came from outside does so of no other,
    and of what did nothing that says more."""
    row = db.execute(_MAY_REPLACE, (newer, older, is_wider)).fetchone()
    return newer != older and bool(row[0])


def note(
    db: sqlite3.Connection, place: Place, newer: int, older: int, record: MemoriesReplaced
) -> None:
    """Note that one takes the place of another, and of what that had taken the place of."""
    about = {
        "scope": place.number,
        "newer": newer,
        "older": older,
        "is_same": record.is_same,
        "is_wider": record.is_wider,
    }
    db.execute(_BEFORE, about)
    db.execute(_ROW, about)


def same(db: sqlite3.Connection, num: int) -> list[int]:
    """Return those that say the same as one, whichever of them stands."""
    return [row[0] for row in db.execute(_SAME, (num,))]


def given_back(
    db: sqlite3.Connection, seq: int, gone: Iterable[int], *, is_forgotten: bool = False
) -> list[int]:
    """Have what was replaced by those that were undone stand again; return it.

    What something else has replaced since stays behind that.

    Args:
        is_forgotten: they were forgotten: only what says less stands again.
    """
    again: list[int] = []
    for newer in sorted(gone):
        for (older,) in db.execute(_OLDER, (newer, is_forgotten)).fetchall():
            heir = db.execute(_HEIR, (older,)).fetchone()
            if heir is not None:
                db.execute(
                    "UPDATE memories SET superseded_by = ?, changed_seq = ? WHERE num = ?",
                    (heir[0], seq, older),
                )
                continue
            db.execute(
                "UPDATE memories SET ended = NULL, ended_at = NULL, superseded_by = NULL,"
                " changed_seq = ? WHERE num = ?",
                (seq, older),
            )
            again.append(older)
    return again
