"""The kinds that services keep for themselves, and the timetable, as the store has them. Pure.

What else stands on the board says how it is kept in its module of `kinds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..contracts import Circuit, TimetableRow
from ..contracts.board import BoardBulletin, SourceFacts
from .kind import KeptKind


def _fitted(row: TimetableRow, others: Sequence[TimetableRow]) -> TimetableRow:
    from ..timetable.check import fitted  # what reckons with schedules takes 20 ms to load

    return fitted(row, others)


ROWS: Final = KeptKind(
    TimetableRow,
    100,
    lambda one, _now: not (one.is_removed or one.is_of_system),
    _fitted,
)
CIRCUITS: Final = KeptKind(Circuit, 10_000, lambda one, _now: one.state != "closed")
BULLETINS: Final = KeptKind(BoardBulletin, 1, lambda _one, _now: False)
FACTS: Final = KeptKind(SourceFacts, 200, lambda _one, _now: False)
