"""Prune and merge, or associate, now."""

from __future__ import annotations

from typing import Final, Literal

from ..operation import Operation
from ..questions import Question, Reply


class Maintain(Question, frozen=True, kw_only=True):
    """Run a pass now: over one scope, or over all if the subject names none."""

    what: Literal["maintenance", "association"] = "maintenance"


class Maintained(Reply, frozen=True, kw_only=True):
    """What a pass did."""

    pruned: int = 0
    merged: int = 0
    """Batches."""
    observed: int = 0
    """Observations that were made of what comes up again and again."""
    replaced: int = 0
    """Memories for which another stands, which says the same or how it is by now."""
    associated: int = 0
    has_more: bool = False
    """There is more to associate than one pass takes."""
    message: str = ""


OPERATION: Final = Operation(name="maintain", question=Maintain, reply=Maintained)
