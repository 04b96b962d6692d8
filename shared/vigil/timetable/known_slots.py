"""Entries of the ledger that were read, kept in memory for those that read them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ..contracts import SlotEntry

KNOWN_MAX: Final = 2_000
KEPT_S: Final = 600.0
"""For so long an entry may be shown that isn't in the log any more."""


class KnownSlots:
    """Entries by row and place: an entry never changes, and a page walks back over twenty of them,
    one question to the broker after the other."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: OrderedDict[tuple[str, int], tuple[float, SlotEntry]] = OrderedDict()

    def find(self, subject: str, seq: int) -> SlotEntry | None:
        """Return the entry of that row at that place; None: it isn't known."""
        read_at, entry = self._known.get((subject, seq), (0.0, None))
        return entry if self._monotonic() - read_at < KEPT_S else None

    def keep(self, subject: str, seq: int, entry: SlotEntry) -> None:
        """Keep what was read just now."""
        self._known[subject, seq] = self._monotonic(), entry
        self._known.move_to_end((subject, seq))
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
