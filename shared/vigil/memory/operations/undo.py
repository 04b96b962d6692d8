"""Revert a source and everything that was derived from it (SPEC M-4)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ..operation import Operation, Route
from ..questions import Named, Question, Reply, described


class Undo(Question, frozen=True, kw_only=True):
    """Revert a source and everything that was derived from it."""

    source: Annotated[Named, described("Where the memories came from.")]
    by: str


class Undone(Reply, frozen=True, kw_only=True):
    """Ids of what stands no more, and of what stands again since its summary is gone."""

    undone: tuple[str, ...]
    restored: tuple[str, ...] = msgspec.field(default_factory=lambda: ())
    """Always written, as no default of a factory is left out. A replica of an older version does
    leave it out where nothing stands again."""
    undone_left_out: int = 0
    """Done, too, and too many for the answer."""
    restored_left_out: int = 0


OPERATION: Final = Operation(
    name="undo",
    question=Undo,
    reply=Undone,
    route=Route(
        name="undo_memories",
        text="Revert a source and everything that was derived from it.",
        method="POST",
        path="/api/memories/undo",
        errors=(404, 409),
    ),
)
