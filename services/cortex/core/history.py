"""Which part of the history the model sees (SPEC I-2)."""

from __future__ import annotations

from collections.abc import Sequence

from vigil.contracts import Row, ToolResultBlock


def trim(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return the newest `limit` rows, less a leading result whose call is cut off.

    A tool call and its result are neighbours, so only the first row can be torn from its
    partner.
    """
    kept = list(rows[-limit:])
    while kept and any(isinstance(block, ToolResultBlock) for block in kept[0].blocks):
        kept.pop(0)
    return kept


def first_turn(chunks: Sequence[tuple[int, int]], limit: int, default: int) -> int:
    """Return the sequence of the oldest turn whose rows are among the newest `limit`.

    Args:
        chunks: (stream sequence of a turn, how many rows it has), oldest first.
        default: what to return if there are none.

    >>> first_turn([(5, 2), (9, 2), (12, 2)], 3, 0)
    9
    """
    total = 0
    oldest = default
    for seq, count in reversed(chunks):
        if total >= limit:
            break
        if count:
            oldest = seq
            total += count
    return oldest
