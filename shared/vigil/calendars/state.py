"""How a calendar is at present, as the replica that keeps it tells with its health."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ..contracts import Instant

CalendarStatus = Literal["new", "synced", "failing", "refused", "not_running"]
"""``new``: not looked at yet. ``failing``: the last look failed, what was seen before still counts.
``refused``: its server refused the password, and isn't asked again with that one for a while.
``not_running``: nobody keeps it."""
FACT: Final = "calendars"
"""Under which name it stands among the facts of a replica's health."""


class CalendarState(msgspec.Struct, frozen=True, kw_only=True):
    """One calendar."""

    state: CalendarStatus
    synced_at: Instant | None = None
    """When it was last seen as it is."""
    problem: str = ""
    """Why the last look failed, in words."""
    remarks: tuple[str, ...] = ()
    """What of it couldn't be read, or is read otherwise than it says."""
    events: int = 0
    """How many events, a series as one."""


UNKEPT: Final = CalendarState(state="not_running")
