"""Parts of a conversation: the rows of a turn, and what of them memory is offered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from vigil.contracts import Row

_BEGINNERS: Final = ("person", "timer", "external", "task")
"""Sources of the row that an exchange begins with."""
PROVENANCE_MAX: Final = 32
"""Ids of events that a memory names; the newest are kept."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The rows of one turn, and what they descend from."""

    seq: int
    """Stream sequence of the turn."""
    rows: tuple[Row, ...]
    tokens: int
    """The estimate for the rows."""
    ordinal: int = 0
    """The number of the turn in its session; 0: it is of another session's history."""
    event_id: str | None = None
    """The id of the event that the turn is about."""
    is_tainted: bool = False
    """Whether something in it descends from untrusted content (SPEC X-3)."""
    is_swayed: bool = False
    """Whether a model wrote it that was shown such content, wherever that stood."""
    sends: tuple[tuple[str, str], ...] = ()
    """Id and text of what it said, as far as a user message may void it."""

    @property
    def is_beginning(self) -> bool:
        """Whether an exchange begins with it. Only here may the history be cut: no tool call is
        torn from its results, and no answer from its question."""
        return begins(self.rows)


def begins(rows: Sequence[Row]) -> bool:
    return bool(rows) and rows[0].source in _BEGINNERS


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a conversation that memory is offered."""

    chunks: tuple[Chunk, ...]
    is_tainted: bool = False
    """Whether it descends from untrusted content in another way than by its rows."""
    next_from: int = 0
    """Sequence of the first turn that was left for another time; 0: none was."""

    @property
    def provenance(self) -> tuple[str, ...]:
        """Ids of the events behind it, each once, in their order."""
        ids = dict.fromkeys(chunk.event_id for chunk in self.chunks if chunk.event_id is not None)
        return tuple(ids)[-PROVENANCE_MAX:]

    @property
    def has_words(self) -> bool:
        """Whether the person said anything in it."""
        return any(row.source == "person" for chunk in self.chunks for row in chunk.rows)

    @property
    def ends_at(self) -> datetime | None:
        """When the last of it was said."""
        return self.chunks[-1].rows[-1].at if self.chunks else None
