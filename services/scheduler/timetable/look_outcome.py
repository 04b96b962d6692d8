"""What became of a slot at which it was looked first. Pure."""

from __future__ import annotations

from typing import NamedTuple

from vigil.contracts import SlotEntry
from vigil.contracts.board import LastSeen


class LookOutcome(NamedTuple):
    """An entry, and what is to be kept of the look."""

    entry: SlotEntry
    seen: LastSeen | None = None
    """Of a watcher."""
    prepared: object = None
    """What the run begins with, if the look told that already."""
