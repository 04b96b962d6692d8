"""Which part of the history the model sees (SPEC I-2)."""

from __future__ import annotations

from collections.abc import Sequence

from vigil.contracts import Block, ExternalBlock, Row, TextBlock, ToolResultBlock

CHARACTERS_MAX = 400_000
"""About 100,000 tokens of English: half of the smallest context window in use (200,000)."""


def trim(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return the newest `limit` rows, less a leading result whose call is cut off.

    Rows that would make the whole longer than `CHARACTERS_MAX` are left out, too, but for the
    newest one: a request that no model takes would fail until they are `limit` rows away.
    A tool call and its result are neighbours, so only the first row can be torn from its
    partner.
    """
    kept: list[Row] = []
    left = CHARACTERS_MAX
    for row in reversed(rows[-limit:]):
        left -= sum(_length(block) for block in row.blocks)
        if left < 0 and kept:
            break
        kept.append(row)
    kept.reverse()
    while kept and any(isinstance(block, ToolResultBlock) for block in kept[0].blocks):
        kept.pop(0)
    return kept


def _length(block: Block) -> int:
    match block:
        case TextBlock():
            return len(block.text)
        case ToolResultBlock():
            return len(block.content)
        case ExternalBlock():
            # Each line is shown behind a bar and a blank, whatever it takes for the end of one.
            return len(block.event.content) + 2 * len(block.event.content.splitlines())
        case _:
            return len(str(block))


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
