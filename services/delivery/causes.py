"""Where an answer goes: back through the channel by which its question came, if that is its way.

A turn says where its messages go, and answers the person in the conversation itself (`SOCKET`). Who
wrote a mail waits for one: what answers it is carried there, too. The log alone tells, so it's the
same whoever looks, and however often.
"""

from __future__ import annotations

from collections.abc import Collection

from vigil.bus.bus import Bus, Message
from vigil.contracts import SOCKET, SendMessage, UserMessage, decode_event, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey


async def channel_of(
    bus: Bus, key: SessionKey, send: SendMessage, turn: Message, answering: Collection[str]
) -> str:
    """Return the channel that a send goes over.

    Args:
        answering: those through which answers go back.

    Raises:
        Unavailable: the broker can't tell.
    """
    named = send.payload.channel
    if named != SOCKET or send.payload.is_autonomous or not answering:
        return named
    try:
        cause = decode_turn(turn.data).event
        if cause is None or cause.type != "user_message":
            return named
        stored = await bus.get_of(key, cause.seq)
        event = None if stored is None else decode_event(stored.data)
    except InvalidInput:
        return named
    came_by = event.payload.channel if isinstance(event, UserMessage) else ""
    return came_by if came_by in answering else named
