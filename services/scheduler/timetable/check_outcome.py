"""What becomes of a slot by what was checked before it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from vigil.contracts import SlotEntry
from vigil.contracts.board import LastSeen


class CheckOutcome(NamedTuple):
    """An entry, and what is to be kept of the check."""

    entry: SlotEntry
    seen: LastSeen | None = None
    """Of a watcher."""
    prepared: object = None
    """What the run begins with, if the check told that already."""


def skipped(begun: SlotEntry, reason: str, told_seq: int = 0) -> SlotEntry:
    """Return how a slot ends at which there was nothing to begin, and how far was read."""
    return replace(
        begun, state="skipped", reason=reason, session="", is_late=False, told_seq=told_seq
    )
