"""Which part of the history the model sees (SPEC I-2), and what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from vigil.contracts import Row, SendMessage, TextBlock, ToolResultBlock, ToolUseBlock, Turn

from .. import sway as sways
from ..draft.chunk import Chunk
from .window import Measured, tokens_of_row, tokens_of_rows

FILL_MAX: Final = 0.95
"""The share of the context window that rows may fill: those beyond it are not shown, if the
compactor could not help."""
NOT_SAID: Final = "Not sent: the person wrote before it was said."
_REFLECTED: Final = ("compacted", "saved", "begun")
"""Outcomes of the turns whose call was about a transcript: a summary (`begun` without one), or what
to remember."""


def length(chunks: Iterable[Chunk]) -> int:
    """Return how many rows they are. Results that came one after the other count as one, or a few
    answers with many calls would push out the question."""
    sources = [row.source for chunk in chunks for row in chunk.rows]
    return len(sources) - sum(a == b == "tool" for a, b in pairwise(sources))


def newest(chunks: Sequence[Chunk], count: int) -> Sequence[Chunk]:
    """Return so many of the newest chunks that they are `count` rows or more; all, if they aren't.

    >>> newest((), 3)
    ()
    """
    start = 0
    while start < len(chunks) and length(chunks[start + 1 :]) >= count:
        start += 1
    return chunks[start:]


def chunk_of(seq: int, turn: Turn) -> Chunk:
    """Return what the history keeps of the turn with that stream sequence."""
    return Chunk(
        seq=seq,
        rows=turn.rows,
        tokens=tokens_of_rows(turn.rows),
        ordinal=turn.ordinal,
        event_id=None if turn.event is None else turn.event.id,
        is_tainted=sways.of_rows(turn).is_outside,
        is_swayed=sways.of_writing(turn).is_outside,
        sends=tuple(
            (effect.id, effect.payload.text.strip())
            for effect in turn.effects
            if isinstance(effect, SendMessage) and effect.payload.is_voidable
        ),
    )


def without(chunks: Sequence[Chunk], unsaid: Collection[str]) -> list[Chunk]:
    """Take out of the history what was decided, and not said: the person spoke first.

    A model would go on as if they had read it. What led to it stays. The text may stand in an
    earlier turn of the same loop, beside a call of a tool.

    Args:
        unsaid: ids of sends.
    """
    texts = {
        (chunk.event_id, text) for chunk in chunks for id_, text in chunk.sends if id_ in unsaid
    }
    if not texts:
        return list(chunks)
    kept = [
        _without(chunk, {t for event, t in texts if event == chunk.event_id}) for chunk in chunks
    ]
    return [chunk for chunk in kept if chunk.rows]


def _without(chunk: Chunk, texts: set[str]) -> Chunk:
    if not texts:
        return chunk
    uses = {
        block.id
        for row in chunk.rows
        for block in row.blocks
        if isinstance(block, ToolUseBlock)
        and block.name == "send_message"
        and str(block.input.get("text", "")).strip() in texts
    }
    rows = tuple(row for row in (_unsaid(row, texts, uses) for row in chunk.rows) if row.blocks)
    return msgspec.structs.replace(chunk, rows=rows, tokens=tokens_of_rows(rows))


def _unsaid(row: Row, texts: set[str], uses: set[str]) -> Row:
    blocks = row.blocks
    if row.role == "assistant":
        spoken = "".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()
        if spoken in texts:
            blocks = tuple(block for block in blocks if not isinstance(block, TextBlock))
    else:
        blocks = tuple(
            ToolResultBlock(tool_use_id=block.tool_use_id, content=NOT_SAID, is_error=True)
            if isinstance(block, ToolResultBlock) and block.tool_use_id in uses
            else block
            for block in blocks
        )
    return msgspec.structs.replace(row, blocks=blocks)


def swayed_turn(turn: Turn) -> bool:
    """Whether a turn is what :func:`swayed` tells of its chunk, which needn't be made for that."""
    return sways.of_rows(turn).is_outside or sways.of_writing(turn).is_outside


def swayed(chunks: Iterable[Chunk]) -> bool:
    """Whether any of them is tainted, or was written by a model that read what is."""
    return any(chunk.is_tainted or chunk.is_swayed for chunk in chunks)


def memorable(chunk: Chunk) -> tuple[Row, ...]:
    """Return what of a chunk memory may be offered as the person's.

    A model that had read untrusted content may have said what that told it to. What the person
    said is theirs all the same.
    """
    if chunk.is_swayed and not chunk.is_tainted:
        return tuple(row for row in chunk.rows if row.source == "person")
    return chunk.rows


def measure(turn: Turn, row_tokens: int) -> Measured | None:
    """Return what the turn's model call tells of the size of a request, if it tells it.

    Args:
        row_tokens: the estimate for all rows that the model is shown from this turn on.
    """
    if not turn.usage or turn.outcome in _REFLECTED:
        return None
    used = turn.usage[-1]
    tokens = (
        used.input_tokens + used.cache_read_tokens + used.cache_write_tokens + used.output_tokens
    )
    if not tokens:  # its server counts none
        return None
    answer = max((i for i, row in enumerate(turn.rows) if row.role == "assistant"), default=None)
    later = () if answer is None else turn.rows[answer + 1 :]
    return Measured(tokens, row_tokens - tokens_of_rows(later))


def trim(rows: Sequence[Row], tokens_max: int | None) -> list[Row]:
    """Return the newest rows, less a leading result whose call is cut off.

    Rows that would make the estimate for the whole exceed `tokens_max` are left out, but for the
    newest one: a request that no model takes would fail until they are gone. None: they are known
    to fit. The newest results are shown with their call, whatever they take: nothing of the
    exchange would be left otherwise.
    """
    kept = list(rows) if tokens_max is None else _newest_within(rows, tokens_max)
    while kept and any(isinstance(block, ToolResultBlock) for block in kept[0].blocks):
        kept.pop(0)
    return kept


def _newest_within(rows: Sequence[Row], tokens_max: int) -> list[Row]:
    kept: list[Row] = []
    left = tokens_max
    for row in reversed(rows):
        left -= tokens_of_row(row)
        if left < 0 and not _is_torn(kept):
            break
        kept.append(row)
    kept.reverse()
    return kept


def _is_torn(kept: Sequence[Row]) -> bool:
    """Whether the newest rows are only results so far, whose call is not among them yet."""
    return all(row.source == "tool" for row in kept)
