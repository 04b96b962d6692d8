"""Storing the result of a call: an event of the session that waits for it."""

from __future__ import annotations

from ..bus.bus import Bus
from ..contracts import ToolResultEvent, encode
from ..observe import trace
from ..subjects import SessionKey


async def store(bus: Bus, key: SessionKey, event: ToolResultEvent) -> None:
    """Store a result under the current trace; a repeat has the same id and stores nothing.

    Raises:
        Unavailable: nobody knows whether it's stored.
        BusError: the broker refused.
    """
    headers = {trace.HEADER: trace.passed_on(trace.current.get())}
    await bus.publish(key.in_event("tool_result"), encode(event), headers, msg_id=event.id)
