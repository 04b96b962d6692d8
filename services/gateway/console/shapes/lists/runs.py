"""What became of instants at which something was due: each once, by its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from ....timetable.slots import SlotView
from .leaf import Leaf, ListPart

READ_MAX: Final = 500
"""Entries of the ledger that can be asked for at once."""


def latest(found: Iterable[SlotView], state: str = "") -> list[SlotView]:
    """Return of each instant of a row what is true of it now.

    The ledger has an entry when it begins and one when it ends, both for good.

    Args:
        found: the newest first.
        state: only those that are in it; empty: all.
    """
    newest: dict[tuple[str, object], SlotView] = {}
    for one in found:
        newest.setdefault((one.row, one.due_at), one)
    return [one for one in newest.values() if state in ("", one.state)]


def part_of_runs(found: Sequence[SlotView], leaf: Leaf, state: str = "") -> ListPart[SlotView]:
    """Return what a page shows of the ledger: no instant that stands on a page before it.

    Args:
        found: the newest first, from the newest on.
        state: as of `latest`.
    """
    part = leaf.part(found, READ_MAX)
    before = len(latest(found[: leaf.start], state))
    shown = latest(found[: leaf.start + leaf.size], state)[before:]
    return replace(part, shown=tuple(shown))
