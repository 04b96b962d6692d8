"""What of the board a message of the person's names, if it is an order in a few words."""

from __future__ import annotations

from msgspec.structs import replace

from vigil.board.asked import read_goals
from vigil.board.mirror import open_approvals
from vigil.bus.bus import Bus
from vigil.contracts import Event, UserMessage
from vigil.subjects import Scope

from ..core import Moment
from ..core.mind import stop
from ..core.work import spoken


async def knowing_named(bus: Bus, whose: Scope, moment: Moment, event: Event | None) -> Moment:
    """Return the moment, with the requests or goals that the message may mean.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    if not isinstance(event, UserMessage):
        return moment
    if words := spoken.read(event.payload.text):
        named = await open_approvals(bus, (whose,), words.called)
        return replace(moment, approvals=tuple(named))
    if stop.read(event.payload.text):
        return replace(moment, goals=await read_goals(bus, whose))
    return moment
