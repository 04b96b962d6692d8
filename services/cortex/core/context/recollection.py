"""What to look for in memory before a loop asks the model, and what a turn says of it (SPEC M)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from vigil.contracts import Block, ExternalBlock, Loop, Row, TaskBlock, TextBlock
from vigil.memory.questions import Hit

from ..draft import OUTSIDE, Draft

QUERY_LENGTH_MAX: Final = 2000
"""Characters that are searched for: of a longer text the beginning and the end, which ask."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters but tab, line feed and carriage return: a page break of a copied text."""
IDS_MAX: Final = 5
"""Ids of memories that a note names."""


class Recollection(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop was given of its owner's memory."""

    hits: tuple[Hit, ...] = ()
    """The best first."""
    missing: str = ""
    """Why there may be more, in words; empty: that was all."""


NOTHING: Final = Recollection()


def query_of(loop: Loop, rows: Sequence[Row]) -> str:
    """Return what to look for, from the rows that the model is shown; empty: nothing.

    The words of the person; of a follow-up its reason; of an event from outside its content. What
    was held back for quiet hours names nothing to look for.
    """
    if loop.is_direct:
        said = (_text(row) for row in reversed(rows) if row.source == "person")
        newest = list(islice(said, len(loop.joined) + 1))
        return shortened("\n".join(reversed(newest)))
    if loop.follow_up is not None:
        is_own = not (loop.timer_id or "").startswith(OUTSIDE)
        return shortened(loop.follow_up.reason) if is_own else ""
    named = [text for row in rows for block in row.blocks if (text := _named(row, block))]
    return shortened(named[-1]) if named else ""


def _named(row: Row, block: Block) -> str:
    """Return what a block names to look for, if nobody's own words began the loop."""
    match block:
        case ExternalBlock(event=event):
            return event.content
        case TaskBlock(title=title):
            return title
        case TextBlock(text=text) if row.source == "task":
            return text
        case _:
            return ""


def _text(row: Row) -> str:
    return " ".join(block.text for block in row.blocks if isinstance(block, TextBlock))


def shortened(text: str) -> str:
    """Return a text of at most `QUERY_LENGTH_MAX` characters, none of which memory would refuse.

    >>> len(shortened("a" * 9000)), shortened(" b\\f")
    (2000, 'b')
    """
    text = _CONTROL.sub(" ", text).strip()
    if len(text) <= QUERY_LENGTH_MAX:
        return text
    half = (QUERY_LENGTH_MAX - 1) // 2
    return f"{text[: QUERY_LENGTH_MAX - 1 - half]} {text[-half:]}"


def note_recall(draft: Draft, recollection: Recollection) -> None:
    """Note what the model was given, so that "why" can be answered."""
    memories = [hit.memory for hit in recollection.hits]
    cause = draft.loop.cause.id
    if memories:
        count = "1 memory" if len(memories) == 1 else f"{len(memories)} memories"
        ids = ", ".join(memory.id for memory in memories[:IDS_MAX])
        more = ", …" if len(memories) > IDS_MAX else ""
        draft.note("recalled", f"{count} ({ids}{more})", cause)
    if recollection.missing:
        # SPEC C-3: a session that begins cold is served, and says so.
        cold = "; the session began so" if draft.ordinal == 1 else ""
        draft.note("recall_degraded", f"{recollection.missing}{cold}", cause)
