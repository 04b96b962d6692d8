"""What reverting a source means, on a reading connection (SPEC M-4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

from ..rules import decide
from ..rules.decide import Reverted
from .places import Place

_OF_SOURCE: Final = "SELECT m.id FROM memories m WHERE m.scope = :scope AND m.source = :id"
_ITSELF: Final = "SELECT m.id FROM memories m WHERE m.scope = :scope AND m.id = :id"
_DERIVED: Final = """SELECT m.id FROM provenance p JOIN memories m ON m.num = p.num
    WHERE p.scope = :scope AND p.of_id = :id"""
_MERGED: Final = """SELECT m.id FROM memories s JOIN merges g ON g.summary = s.num
    JOIN memories m ON m.num = g.member AND m.superseded_by = s.id
    WHERE s.scope = :scope AND s.id = :id AND m.ended = 'merged'
    UNION SELECT m.id FROM memories s JOIN replaced r ON r.newer = s.num
    JOIN memories m ON m.num = r.older AND m.superseded_by = s.id AND m.ended = 'replaced'
    WHERE s.scope = :scope AND s.id = :id AND s.ended IS NULL"""
_REVERTIBLE: Final = _ITSELF + " AND (m.ended IS NULL OR m.ended NOT IN ('forgotten', 'undone'))"


def reverted(db: sqlite3.Connection, place: Place | None, source: str) -> Reverted:
    """Return what would stand no more, and what would stand again.

    What was forgotten or undone before leads to what was made of it, and isn't named itself.

    Args:
        db: inside one moment.
        place: of the scope; None: nothing is in it.
        source: of memories, or the id of one, or of an event that some were made of.
    """
    if place is None:
        return Reverted(())

    def ids(sql: str) -> Callable[[str], list[str]]:
        return lambda i: [row[0] for row in db.execute(sql, {"scope": place.number, "id": i})]

    derived, revertible = ids(_DERIVED), ids(_REVERTIBLE)
    roots = [*ids(_OF_SOURCE)(source), *ids(_ITSELF)(source), *derived(source)]
    found = decide.revert(roots, derived, ids(_MERGED))
    undone = tuple(i for i in found.undone if revertible(i))
    return Reverted(undone, found.restored, found.families)
