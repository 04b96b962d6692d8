"""Whom a message is for, and what it answers: the log alone tells, so it's the same in each try."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ..contracts import Cause, Said, UserMessage, decode_event, decode_turn
from ..contracts.events import Event
from ..errors import InvalidInput
from ..subjects import SessionKey
from ..teams import TEAM

if TYPE_CHECKING:
    from ..bus.bus import Bus


async def cause_of(bus: Bus | None, said: Said) -> Cause | None:
    """Return a pointer to the event that a message came of; None: it can't be told any more.

    Raises:
        Unavailable: the broker can't tell.
    """
    if bus is None or not said.turn_seq:
        return None
    with contextlib.suppress(InvalidInput):  # of a form that a later version wrote
        stored = await bus.get_of(SessionKey.parse(said.session_key), said.turn_seq)
        return None if stored is None else decode_turn(stored.data).event
    return None


async def event_of(bus: Bus | None, said: Said) -> Event | None:
    """Return the event that a message came of, likewise. Raises: as above."""
    cause = await cause_of(bus, said)
    if bus is None or cause is None:
        return None
    with contextlib.suppress(InvalidInput):
        stored = await bus.get_of(SessionKey.parse(said.session_key), cause.seq)
        return None if stored is None else decode_event(stored.data)
    return None


async def asked_by(bus: Bus | None, said: Said) -> UserMessage | None:
    """Return the message of a person that it answers, likewise. Raises: as above."""
    event = await event_of(bus, said)
    return event if isinstance(event, UserMessage) else None


def user_of(said: Said, event: Event | None) -> str:
    """Return whom a message is for: of a team's, who asked; empty: nobody in particular."""
    user = SessionKey.parse(said.session_key).user
    if user != TEAM:
        return user
    return event.payload.by if isinstance(event, UserMessage) else ""
