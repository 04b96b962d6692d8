"""The history of an open session, as read back from its turns and grown by its commits."""

from __future__ import annotations

from collections import deque

from vigil.contracts import Row

from .core.history import first_turn, trim


class History:
    """Rows by the turn that holds them; forgets what the model won't see again."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[tuple[int, tuple[Row, ...]]] = deque()
        self._count = 0

    def add(self, turn_seq: int, rows: tuple[Row, ...]) -> None:
        """Append the rows of the turn with stream sequence `turn_seq`."""
        if not rows:
            return
        self._chunks.append((turn_seq, rows))
        self._count += len(rows)
        while self._count - len(self._chunks[0][1]) >= self._limit:
            self._count -= len(self._chunks.popleft()[1])

    def rows(self, more: list[Row]) -> tuple[Row, ...]:
        """Return what the model sees: the newest rows, with `more` at their end."""
        known = [row for _, rows in self._chunks for row in rows]
        return tuple(trim([*known, *more], self._limit))

    def first_turn(self, default: int) -> int:
        """Return from which turn on the history must be read back."""
        return first_turn([(seq, len(rows)) for seq, rows in self._chunks], self._limit, default)
