"""The events of one session as they come in, in their order."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from vigil.bus.bus import Message
from vigil.bus.shared import SessionFollower, SharedFollower
from vigil.contracts import Cause, Event, EventType, decode_event
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from .. import core

SUBJECT_TYPES: Final[dict[str, EventType]] = {
    "said": "user_message",
    "timer": "timer",
    "tool_result": "tool_result",
    "tick": "tick",
    "external": "external",
    "control": "control",
    "told": "told",
}


class Inbox:
    """Follows the session's events from a position on; `follow` comes first."""

    def __init__(self, events: SharedFollower, key: SessionKey) -> None:
        """`events`: of all sessions of this replica."""
        self._shared = events
        self._key = key
        self._follower: SessionFollower | None = None

    async def follow(self, start: int) -> None:
        """Follow the events from the sequence `start` on, instead of what was followed before."""
        await self.close()
        self._follower = await self._shared.follow(self._key, start)

    async def close(self) -> None:
        if self._follower is not None:
            await self._follower.close()

    @property
    def _events(self) -> SessionFollower:
        if self._follower is None:
            raise AssertionError("nothing is followed yet")
        return self._follower

    @property
    def has_any(self) -> bool:
        return self._events.has_any

    def take_nowait(self) -> Message | None:
        return self._events.take_nowait()

    async def next(self) -> Message:
        return self._events.take_nowait() or await self._events.__anext__()

    async def next_within(self, timeout_s: float) -> Message | None:
        """Return the next event, or None if none came for so long."""
        return await self._events.next_within(timeout_s)

    async def during(self, call: asyncio.Future[Any]) -> Message | None:
        """Wait for the next event, or for the call to end (None)."""
        arrival = asyncio.ensure_future(self._events.arrived())
        try:
            both: set[asyncio.Future[Any]] = {call, arrival}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if arrival.done():
                arrival.result()
        finally:
            arrival.cancel()
        return None if call.done() else self._events.take_nowait()

    # ------------------------------------------------------------ what it is

    def decode(self, message: Message) -> Event:
        """Return the event. Raises: InvalidInput."""
        return decoded(self._key, message)

    def decode_poison(self, message: Message) -> tuple[Cause, Event | None]:
        """Return what is known of an event that is given up.

        Whoever waits for its end knows no other id than its own, so that is used if it can be read.
        """
        try:
            event: Event | None = self.decode(message)
        except InvalidInput:
            event = None
        kind = SUBJECT_TYPES.get(_kind(message), "external")
        id_ = f"seq-{message.seq}" if event is None else event.id
        return Cause(id=id_, seq=message.seq, type=kind), event


def decoded(key: SessionKey, message: Message) -> Event:
    """Return an event of a session's log. Raises: InvalidInput."""
    event = decode_event(message.data)
    if event.session_key != str(key):
        raise InvalidInput("session_key", f"is {event.session_key!r} on {message.subject}")
    if core.cause_of(message.seq, event).type != SUBJECT_TYPES.get(_kind(message)):
        raise InvalidInput("type", f"does not belong on {message.subject}")
    return event


def _kind(message: Message) -> str:
    return message.subject.split(".")[5]
