"""Tell how much there is, and what the indexes are made of."""

from __future__ import annotations

from typing import Final

from ..operation import Operation, Route
from ..questions import Question, Rebuilding, Reply
from ..wire import MemoryStats


class GetStats(Question, frozen=True, kw_only=True):
    """How much there is, and what the indexes are made of."""


class Stats(Reply, frozen=True, kw_only=True):
    """How much there is, and what the indexes are made of."""

    memories: int
    """That stand."""
    ended: int
    """But for those that somebody asked to forget."""
    edges: int
    by_type: dict[str, int]
    by_source: dict[str, int]
    """The 50 largest."""
    position: int
    """The last record of MEMORIES that is in SQLite, of all scopes."""
    vectors_position: int
    """The same, of the vector index."""
    embedder: str
    """Model and dimension: ``wordllama-l2-256``."""
    index: str
    """Which vector index: ``edge`` or ``qdrant``."""
    rebuild: Rebuilding | None = None


OPERATION: Final = Operation(
    name="stats",
    question=GetStats,
    reply=Stats,
    is_reading=True,
    shown=MemoryStats,
    route=Route(
        name="get_memory_stats",
        text="Tell how much there is, what the indexes are made of, and how far a rebuild is.",
        method="GET",
        path="/api/memories/stats",
    ),
)
