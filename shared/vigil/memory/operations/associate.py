"""Associate two memories."""

from __future__ import annotations

from typing import Annotated, Final

from ...contracts import MemoryLink, Relation
from ...errors import InvalidInput
from ..operation import Operation, Route
from ..questions import Id, Question, Reply, Unit, described
from ..wire import AssociatedMemories


class Associate(Question, frozen=True, kw_only=True):
    """Associate two memories of one scope; again: replace the weight."""

    from_id: Id
    to_id: Id
    by: str
    relation: Relation = "related_to"
    weight: Annotated[Unit, described("How strongly: 0 to 1.")] = 0.5


class Associated(Reply, frozen=True, kw_only=True):
    """The association as it is now."""

    edge: MemoryLink


def check(wanted: Associate) -> None:
    """Refuse an association with itself. Raises: InvalidInput."""
    if wanted.from_id == wanted.to_id:
        raise InvalidInput("to_id", "must be another memory than from_id")


OPERATION: Final = Operation(
    name="associate",
    question=Associate,
    reply=Associated,
    check=check,
    shown=AssociatedMemories,
    route=Route(
        name="associate_memories",
        text="Associate two memories; the same pair and relation again replaces the weight.",
        method="POST",
        path="/api/memories/associate",
        errors=(404, 409),
    ),
)
