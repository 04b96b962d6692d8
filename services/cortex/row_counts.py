"""What the rows of a request take: bytes by source, and files. Pure.

A conversation asks with the same rows again and again, and with some more at their end. So each row
is put into words and counted once, when it is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from vigil.contracts import Attachment, AttachmentBlock, Row

AROUND: Final = 1
"""Bytes of a list as JSON beside those of its parts, of which each has one more to its end."""


class CountedRows(msgspec.Struct, frozen=True):
    """Rows as a model is shown them, and what they take."""

    rows: tuple[Row, ...] = ()
    sizes: dict[str, int] = {}
    """Bytes as JSON, by the source of the rows; with one for each row's comma."""
    files: tuple[Attachment, ...] = ()
    """What is attached to them, the oldest first."""

    @property
    def size(self) -> int:
        """Bytes of all as JSON."""
        return max(sum(self.sizes.values()) + AROUND, len("[]"))

    def and_more(self, rows: tuple[Row, ...]) -> CountedRows:
        """Return what these and some more take.

        >>> CountedRows().and_more(()) == CountedRows()
        True
        """
        sizes, files = dict(self.sizes), list(self.files)
        for row in rows:
            sizes[row.source] = sizes.get(row.source, 0) + len(msgspec.json.encode(row)) + 1
            files += [block.file for block in row.blocks if isinstance(block, AttachmentBlock)]
        return CountedRows((*self.rows, *rows), sizes, tuple(files))


NONE: Final = CountedRows()


class ShownRows:
    """The rows of one session as its model was shown them last."""

    def __init__(self) -> None:
        self._told: tuple[Row, ...] = ()
        """Those that it was shown, as the history has them."""
        self._counted = NONE

    def of(self, rows: tuple[Row, ...], shown: Callable[[Row], Row]) -> CountedRows:
        """Return rows as they are shown, and what they take.

        Args:
            shown: puts a row into words, the same one always into the same.
        """
        known = len(self._told)
        if rows[:known] != self._told:  # the history begins at another row now
            known, self._counted = 0, NONE
        if known < len(rows):
            self._counted = self._counted.and_more(tuple(map(shown, rows[known:])))
        self._told = rows
        return self._counted


def counted(rows: Iterable[Row]) -> CountedRows:
    """Return rows, and what they take."""
    return NONE.and_more(tuple(rows))
