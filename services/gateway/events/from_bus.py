"""Events of programs on the bus: from the stream EVENTS into sessions.

Any replica may pull any event. It's read by the same code as one that comes over HTTP, and it goes
to sessions of the user whose credential published it, whatever the event says. Its id derives from
the subject it was published to and its own `source` and `id`, so that a redelivery and a sender's
repeat are stored once. What can't be used becomes a dead letter; nobody waits for an answer here.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from vigil import crash
from vigil.bus.bus import BusError, Message
from vigil.errors import InvalidInput, Unavailable
from vigil.observe import trace
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.topology import OUTSIDE_EVENTS
from vigil.worker import dead_letters
from vigil.worker.consumer_loop import consuming
from vigil.worker.dead_letters import NOBODY
from vigil.worker.lanes import Lanes
from vigil.worker.patience import AWAY

from ..http.problem import Problem
from ..state.edge import Edge
from . import cloud_events
from . import endpoint as events
from .cloud_events import OutsideEvent

log = structlog.get_logger("vigil.gateway")

BUSY_DELAY_S: Final = 2.0
"""After which an event for a session that is too far behind is looked at again."""
AWAY_DELAY_S: Final = 1.0
TRIES_MAX: Final = 5
"""Of an event that meets a fault of ours, before it becomes a dead letter."""
STUCK_DELAY_S: Final = 30.0
"""After which an event that can't even be buried is looked at again."""
IN_HAND_MAX: Final = 1024
"""Events taken and not dealt with: all that four credentials may have waiting."""
KEPT_BYTES_MAX: Final = 16 * 1024
"""Of an event that can't be used: enough to see what it was, too little to fill a disk with."""


class OutsideEvents:
    """Takes in what outside programs publish."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._limits = events.limits_of(edge)
        self._faults: dict[int, int] = {}
        """How often an event that is to come again met a fault of ours, by sequence."""

    async def run(self) -> None:
        """Take events in until cancelled."""
        async with (
            consuming(self._edge.bus, "gateway", OUTSIDE_EVENTS) as loops,
            asyncio.TaskGroup() as group,
        ):
            # A lane for each credential: nobody waits behind another's flood.
            lanes = Lanes(group, self._handle)

            async def take(message: Message) -> None:
                lanes.put(message.subject, message.seq, message)
                await lanes.below(IN_HAND_MAX)

            for loop in loops:
                await loop.run(take)

    async def _handle(self, message: Message) -> None:
        """Deal with one event; one that has to wait holds up no other."""
        crash.point("gateway.event.received")
        bus = self._edge.bus
        # Broker away: what wasn't acknowledged comes again.
        with contextlib.suppress(Unavailable):
            try:
                delay_s = await self._try(message)
            except BusError as error:
                log.error(
                    "event stuck", action="gateway.event_stuck", seq=message.seq, error=str(error)
                )
                delay_s = STUCK_DELAY_S
            if delay_s:
                await bus.nak(message, delay_s)
            else:
                await bus.ack(message)

    async def _try(self, message: Message) -> float:
        """Take the message or bury it -> 0, or the seconds after which to try again."""
        try:
            return await self._take(message)
        except Unavailable as error:
            log.warning("event comes again", action="gateway.event", error=str(error))
            return AWAY_DELAY_S
        except Exception as error:  # a fault of ours: neither a crash loop nor an endless one
            log.exception("event failed", action="gateway.event_failed", seq=message.seq)
            faults = self._faults.pop(message.seq, 0) + 1
            if faults < TRIES_MAX:
                self._faults[message.seq] = faults
                return AWAY_DELAY_S
            _, user, _ = message.subject.split(".")
            await self._bury(message, _about(user, None), f"{faults} tries: {error!r}")
            return 0.0

    async def _take(self, message: Message) -> float:
        edge = self._edge
        _, user, credential = message.subject.split(".")
        if wait_s := edge.limiter.take(f"bus:{user}.{credential}", edge.clock.monotonic()):
            return max(wait_s, BUSY_DELAY_S)
        event: OutsideEvent | None = None
        try:
            event = cloud_events.structured(message.data, self._limits)
            config = edge.context.settings.config
            session = events.session_for(event, user, config)
            person = Principal(user=user, is_admin=False, token_id="", teams=config.teams)
            await events.check_agent_of(edge, event, session, person)
            await events.take(
                edge,
                session,
                user,
                event,
                source=f"bus:{credential}",
                parent=message.header(trace.HEADER),
            )
        except InvalidInput as error:
            await self._bury(message, _about(user, event), str(error))
        except Problem as error:
            if message.delivered == 1:
                log.info("event waits", action="gateway.event_waits", reason=error.detail)
            return BUSY_DELAY_S if error.status == 429 else AWAY_DELAY_S
        else:
            crash.point("gateway.event.stored")
        return 0.0

    async def _bury(self, message: Message, about: SessionKey, cause: str) -> None:
        """Keep what can't be used, with the cause; at least once, under one id.

        All letters of a credential lie under one subject, whatever session its events name: so the
        newest thousand of it are kept, and it evicts nobody else's.
        """
        letter = dead_letters.build(
            "gateway",
            message,
            cause,
            about,
            now=self._edge.clock.now(),
            bytes_max=KEPT_BYTES_MAX,
        )
        _, user, credential = message.subject.split(".")
        place = SessionKey(user, NOBODY, credential)
        counts = self._edge.context.metrics
        # What the broker refuses waits, and holds up nothing else of its credential.
        await dead_letters.bury(self._edge.bus, counts, letter, message, place, errors=AWAY)
        crash.point("gateway.event.buried")


def _about(user: str, event: OutsideEvent | None) -> SessionKey:
    """Return whose session a dead letter is listed under: always the publishing user's."""
    if event is not None:
        with contextlib.suppress(InvalidInput):
            session = SessionKey.parse(event.subject)
            if session.user == user:
                return session
    return SessionKey(user, NOBODY, NOBODY)
