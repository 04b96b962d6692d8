"""What became of instants at which something was due: each once, by its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...timetable.slots import SlotView


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
