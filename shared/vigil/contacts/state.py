"""How a list of contacts is at present, as the replica that refreshes it tells with its health."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ..contracts import Instant

ListStatus = Literal["new", "read", "failing", "not_running"]
"""``new``: not looked at yet. ``failing``: the last look failed, what was read before still counts.
``not_running``: nobody refreshes it."""
FACT: Final = "contacts"
"""Under which name it stands among the facts of a replica's health."""


class ListState(msgspec.Struct, frozen=True, kw_only=True):
    """One list."""

    state: ListStatus
    read_at: Instant | None = None
    """When it was last read."""
    problem: str = ""
    """Why the last look failed, or whom it has doesn't count, in words."""
    people: int = 0
    """How many it has."""
    left_out: int = 0
    """How many of it aren't kept, or can't be read."""


UNKEPT: Final = ListState(state="not_running")
OPEN: Final = "others can write the file, or its folder: whom it has doesn't count as known"
