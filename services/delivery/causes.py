"""Where a message of the conversation itself goes beside it.

A turn says where its messages go, and answers the person in the conversation (`SOCKET`). Who wrote
a mail waits for one: what answers it is carried there, too; the log alone tells that. And what
needs leave is announced where its person has unasked messages come, if that is the channel's way:
they may have gone. Whoever looks first orders it, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vigil.bus.bus import Bus, Message
from vigil.contracts import SOCKET, SendMessage, UserMessage, decode_event, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey
from vigil.teams import TEAM
from vigil.words.asked import asked_in

from .channels import ComingChannels, OpenChannel


class Ways:
    """The channels that carry what a turn says in the conversation."""

    def __init__(self, channels: Mapping[str, OpenChannel]) -> None:
        self.answering = frozenset(name for name, one in channels.items() if one.is_answering)
        """Those through which answers go back."""
        self.announcing = frozenset(name for name, one in channels.items() if one.is_announcing)
        """Those that announce what is asked."""
        self.preferred: Callable[[str], str] = lambda user: ""
        """Where a person has unasked messages come."""
        self.coming: ComingChannels | None = None
        """Those that delivery doesn't use yet: people may write through them already. None: none
        are to come."""

    async def with_coming(self) -> Ways:
        """Return these ways, and those to come."""
        found = {} if self.coming is None else await self.coming.recent()
        if not found:
            return self
        ways = Ways({})
        ways.answering = self.answering | {n for n, one in found.items() if one.is_answering}
        ways.announcing = self.announcing | {n for n, one in found.items() if one.is_announcing}
        ways.preferred = self.preferred
        return ways

    def announced(self, key: SessionKey, text: str) -> str:
        """Return the channel that announces what a message asks; empty: none does. Of a team, one
        member's channel is not the others'."""
        if not self.announcing or key.user == TEAM or not asked_in(text):
            return ""
        wanted = self.preferred(key.user)
        return wanted if wanted in self.announcing else ""


async def channel_of(
    bus: Bus, key: SessionKey, send: SendMessage, turn: Message, ways: Ways
) -> str:
    """Return the channel that a send goes over.

    Raises:
        Unavailable: the broker can't tell.
    """
    named = send.payload.channel
    if named != SOCKET or send.payload.is_autonomous:
        return named
    ways = await ways.with_coming()
    came_by = await _came_by(bus, key, turn) if ways.answering else ""
    if came_by in ways.answering:
        return came_by
    return ways.announced(key, send.payload.text) or named


async def _came_by(bus: Bus, key: SessionKey, turn: Message) -> str:
    """Return the channel through which a person wrote what a turn answers; empty: none."""
    try:
        cause = decode_turn(turn.data).event
        if cause is None or cause.type != "user_message":
            return ""
        stored = await bus.get_of(key, cause.seq)
        event = None if stored is None else decode_event(stored.data)
    except InvalidInput:
        return ""
    return event.payload.channel if isinstance(event, UserMessage) else ""
