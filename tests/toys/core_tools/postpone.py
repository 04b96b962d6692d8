"""A toy tool of the core's, all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import msgspec

from services.cortex.core.draft import Draft
from services.cortex.core.tools.declaration import Leave, OwnCall, Result, tool
from vigil.contracts.arguments import Arguments


class Postpone(Arguments, frozen=True, kw_only=True):
    """Put a follow-up off."""

    timer_id: str
    seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)]


def is_missing(given: Postpone, call: OwnCall, draft: Draft) -> str | None:
    return None if given.timer_id in draft.state.follow_ups else f"No {given.timer_id!r} is open."


@tool(
    risk="write",
    profiles=("channel",),
    obstacle=is_missing,
    leave=Leave(
        is_needed=lambda given, draft: draft.state.follow_ups[given.timer_id].keep,
        refusal="Only the person may put that off.",
        loss=lambda given, draft: f"{given.timer_id} comes {given.seconds} s later",
    ),
)
def postpone(given: Postpone, call: OwnCall, draft: Draft) -> Result:
    planned = draft.state.follow_ups[given.timer_id]
    later = planned.fire_at + timedelta(seconds=given.seconds)
    planned = msgspec.structs.replace(planned, fire_at=later, generation=draft.ordinal)
    draft.open_follow_up(given.timer_id, planned)
    return f"Put off to {later:%H:%M:%S}.", False
