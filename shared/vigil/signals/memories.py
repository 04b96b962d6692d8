"""From a record of MEMORIES to the signal that it gives. Pure, and the same each time.

Neither contents nor people are in it, but ids, types and counts: a team's memory belongs to nobody
whose signals could be erased with them. One record gives one signal, however many memories it is
about. A record is told as it is stored: one that the fold finds to change nothing (the second save
of a memory, a merge of what was forgotten meanwhile) is told, too.
"""

from __future__ import annotations

from typing import Final

from ..contracts import (
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    SignalSource,
    decode_memory,
)
from ..subjects import Scope
from .draft import Signals

_WHY: Final = {
    "asked": "as asked",
    "expired": "out of date",
    "decayed": "of no use for long",
    "undone": "an undo",
}


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, MemoryRecord]:
    """Decode a record of MEMORIES. Raises: InvalidInput, it can't be read."""
    return Signals(Scope.of_subject(subject), source), decode_memory(data)


def saved(signals: Signals, record: MemorySaved) -> None:
    """Tell that something is remembered."""
    memory = record.memory
    signals.add(
        "memory.saved",
        record.at,
        f"A memory was saved: {memory.type}",
        caused_by=None,
        subject=memory.id,
        type=memory.type,
        source=memory.source.partition(":")[0] or None,
        is_tainted=memory.is_tainted or None,
    )


def merged(signals: Signals, record: MemoriesMerged) -> None:
    """Tell that a summary took the place of others."""
    count = len(record.merged_ids)
    signals.add(
        "memory.merged",
        record.at,
        f"A summary took the place of {_memories(count)}",
        caused_by=None,
        subject=record.memory.id,
        count=count,
    )


def replaced(signals: Signals, record: MemoriesReplaced) -> None:
    """Tell that a memory took the place of others."""
    what = "says the same" if record.is_same else "tells how it is by now"
    if record.is_wider:
        what = "says that and more"
    count = len(record.memory_ids)
    signals.add(
        "memory.replaced",
        record.at,
        f"A memory that {what} took the place of {_memories(count)}",
        caused_by=None,
        subject=record.by_id,
        count=count,
        is_same=record.is_same,
    )


def forgotten(signals: Signals, record: MemoryForgotten | MemoriesUndone) -> None:
    """Tell what is recalled no more, and why."""
    if isinstance(record, MemoriesUndone):
        _gone(signals, record, "undone", record.memory_ids, restored=len(record.restored_ids))
    else:
        _gone(signals, record, record.reason, record.memory_ids)


def _gone(
    signals: Signals,
    record: MemoryForgotten | MemoriesUndone,
    reason: str,
    memory_ids: tuple[str, ...],
    *,
    restored: int = 0,
) -> None:
    count = len(memory_ids)
    signals.add(
        "memory.forgotten",
        record.at,
        f"No longer recalled: {_memories(count)} ({_WHY[reason]})",
        caused_by=None,
        subject=memory_ids[0] if count == 1 else None,
        reason=reason,
        count=count,
        restored=restored or None,
    )


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"
