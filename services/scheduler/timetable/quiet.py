"""Slots for which there was nothing new, side by side, as one entry (LOOPS L-3). Pure.

A row that is looked at first is due as any row is; but where another would be run, it may only be
written down that there was nothing to run for.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import SlotEntry

RANGE_MAX: Final = 60
"""Slots that one entry stands for."""
RANGE_FOR: Final = timedelta(hours=1)
"""How long an entry may wait to be stored: after a crash its slots count as missed, and it's looked
again."""


def is_due(quiet: SlotEntry, following: datetime | None) -> bool:
    """Whether an entry may wait no longer: the next slot isn't soon, or never comes."""
    since = quiet.first_at or quiet.due_at
    return following is None or following - since >= RANGE_FOR


def joined(quiet: SlotEntry | None, entry: SlotEntry) -> SlotEntry | None:
    """Return one entry for both; None: they are of two kinds, or it would be too long."""
    if quiet is None:
        return entry
    if quiet.reason != entry.reason or quiet.count >= RANGE_MAX:
        return None
    since = quiet.first_at or quiet.due_at
    return replace(entry, count=quiet.count + entry.count, first_at=since)
