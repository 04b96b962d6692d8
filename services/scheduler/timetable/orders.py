"""What the timetable tells sessions: that a run begins, and that it has had its time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus
from vigil.contracts import Control, Tick, decode_event, encode
from vigil.contracts.board import OpenRun
from vigil.errors import WrongLastSequence
from vigil.observe import trace
from vigil.subjects import SessionKey

STREAM: Final = "SYSTEM"

log = structlog.get_logger("vigil.scheduler")


class RunOrders:
    """Stores the events by which runs begin and end."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def send_tick(self, tick: Tick) -> None:
        """Tell a session that is there that it's time. It knows repeats."""
        key = SessionKey.parse(tick.session_key)
        await self._bus.publish(
            key.in_event("tick"), encode(tick), trace.new_headers(), msg_id=tick.id
        )

    async def start(self, run: OpenRun, event: Control) -> None:
        """Store the first event of a session, unless it has one."""
        key = SessionKey.parse(run.session)
        try:
            await self._bus.publish(
                key.in_event("control"),
                encode(event),
                trace.new_headers(),
                expect=0,
                expect_subject=key.in_all,
            )
        except WrongLastSequence:
            log.info("started before", action="scheduler.slot", session=run.session)

    async def end(self, run: OpenRun, event: Control) -> datetime:
        """Tell a session that it has had its time, unless it was told; return when it was."""
        key = SessionKey.parse(run.session)
        newest = await self._bus.get_last(STREAM, key.in_event("control"))
        told = None if newest is None else decode_event(newest.data)
        if told is not None and told.id == event.id:
            return told.created_at
        await self._bus.append(
            key.in_event("control"),
            encode(event),
            trace.new_headers(),
            among=key.in_all,
            msg_id=event.id,
        )
        crash.point("scheduler.slot.ended")
        return event.created_at
