"""What is summed up with time: notes merged, and a summary whose text was written anew (SPEC M-6).
Pure, as `.decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import msgspec

from vigil.contracts import IMPORTANCE, Memory
from vigil.memory.questions import CONTENT_BYTES_MAX
from vigil.memory.summaries import merged_id, rewritten_id

from .decide import is_expired

MERGE_AGE: Final = timedelta(days=7)
MERGE_MIN: Final = 3
MERGE_BATCH: Final = 5


class Merge(msgspec.Struct, frozen=True):
    """One summary, and what it takes the place of."""

    memory: Memory
    merged_ids: tuple[str, ...]


def is_mergeable(memory: Memory, now: datetime) -> bool:
    """Tell whether a memory that stands is an old volatile note."""
    is_old = now - memory.created_at > MERGE_AGE
    return memory.stability == "volatile" and is_old and not is_expired(memory.expires_at, now)


def merges(notes: Iterable[Memory], now: datetime) -> list[Merge]:
    """Return the merges of one scope's memories that stand, whatever order they come in.

    Those of one source and conversation go together, by the time of what they tell, five to a
    summary: so each can be found, and undone, by where it is from. What is left over stays unless
    it is three at least, and so does what is too long for a summary together with two others.
    Tainted notes are apart: with them, the person's own would not be given unasked again.
    """
    eligible = [note for note in notes if is_mergeable(note, now)]
    eligible.sort(key=lambda note: (*_kind(note), _happened_at(note), note.id))
    groups = (list(group) for _, group in groupby(eligible, _kind))
    return [merge(batch, now) for group in groups for batch in _batches(group)]


def _kind(note: Memory) -> tuple[bool, str, str]:
    return note.is_tainted, note.source, note.thread


def merge(batch: Sequence[Memory], now: datetime) -> Merge:
    """Return the summary of a batch of one kind: its contents, each with its day."""
    ids = tuple(note.id for note in batch)
    is_tainted, source, thread = _kind(batch[0])
    summary = Memory(
        id=merged_id(ids),
        content="\n".join(map(_line, batch)),
        created_at=now,
        type="summary",
        importance=IMPORTANCE["summary"],
        source=source,
        stability="stable",
        thread=thread,
        occurred_at=max(map(_happened_at, batch)),
        expires_at=_bound([note.expires_at for note in batch], max),
        valid_from=_bound([note.valid_from for note in batch], min),
        valid_to=_bound([note.valid_to for note in batch], max),
        provenance=ids,
        is_tainted=is_tainted,
    )
    return Merge(summary, ids)


def rewritten(summary: Memory, text: str, *, is_tainted: bool, now: datetime) -> Merge:
    """Return the memory that has a summary's text written anew, and takes its place: all else of it
    is as it was, and it's no more to be trusted.

    Args:
        is_tainted: whether content from outside had a part in the text.
    """
    memory = Memory(
        id=rewritten_id(summary.id),
        content=text,
        created_at=now,
        type=summary.type,
        importance=summary.importance,
        source=summary.source,
        stability=summary.stability,
        thread=summary.thread,
        occurred_at=summary.occurred_at,
        expires_at=summary.expires_at,
        valid_from=summary.valid_from,
        valid_to=summary.valid_to,
        provenance=(summary.id,),
        is_tainted=summary.is_tainted or is_tainted,
    )
    return Merge(memory, (summary.id,))


def _batches(notes: Sequence[Memory]) -> list[list[Memory]]:
    """Cut notes into batches of five, fewer if the text would be too long, never below three."""
    batches: list[list[Memory]] = []
    batch: list[Memory] = []
    size = 0
    for note in notes:
        length = len(_line(note).encode()) + 1
        if batch and (len(batch) == MERGE_BATCH or size + length > CONTENT_BYTES_MAX):
            batches.append(batch)
            batch, size = [], 0
        batch.append(note)
        size += length
    batches.append(batch)
    return [batch for batch in batches if len(batch) >= MERGE_MIN]


def _line(note: Memory) -> str:
    return f"{_happened_at(note):%Y-%m-%d}: {note.content}"


def _happened_at(note: Memory) -> datetime:
    return note.created_at if note.occurred_at is None else note.occurred_at


def _bound(
    ends: Sequence[datetime | None], pick: Callable[[Iterable[datetime]], datetime]
) -> datetime | None:
    """Return the widest end of ranges; one that is open leaves it open."""
    known = [end for end in ends if end is not None]
    return pick(known) if len(known) == len(ends) else None
