"""Discord's gateway: a session over sockets, whose events are told again after the number that its
reader had come to."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator
from typing import Any, Final

from ...background.end import end_tasks
from ...subjects import token_of
from ..answers import NotTaken
from ..chats.calls import CallFailed, token_refused
from ..chats.fields import dict_in, text_in
from ..network_api import NetworkSocket, SocketClosed
from .happenings import DiscordMark

INTENTS: Final = 1 << 9 | 1 << 12
"""Messages in channels, and those to the bot alone. What others say in channels has no content
without a right that isn't asked for; what names the bot has."""
FIRST_S: Final = 20.0
REFUSED: Final = {
    4004: "authentication failed",
    4010: "invalid shard",
    4011: "sharding required",
    4012: "invalid API version",
    4013: "invalid intents",
    4014: "disallowed intents",
}
"""Codes by which a socket is closed for good."""
FORGOTTEN: Final = (4003, 4007, 4009)
"""Codes after which the session can't be resumed."""


class Op(enum.IntEnum):
    """What an object on the socket is."""

    EVENT = 0
    BEAT = 1
    IDENTIFY = 2
    RESUME = 6
    RECONNECT = 7
    INVALID = 9
    HELLO = 10
    BEATEN = 11


class SessionLost(CallFailed):
    """The session can't be resumed: another begins."""

    def __init__(self, why: str) -> None:
        super().__init__(NotTaken(reason=f"Discord ended the session: {why}"))


class DiscordGateway:
    """One socket of a session."""

    def __init__(self, socket: NetworkSocket, token: str, mark: DiscordMark) -> None:
        self._socket = socket
        self._token = token
        self._session = mark.session
        self._seq = mark.seq
        self._is_beaten = True
        self.is_new = not mark.session
        """Whether another session begins with this socket."""

    async def close(self) -> None:
        await self._socket.close()

    async def begin(self) -> float:
        """Greet; returns how often a beat is due, in seconds. Raises: CallFailed."""
        hello = await self._socket.next(FIRST_S)
        interval = dict_in(hello, "d").get("heartbeat_interval")
        if hello.get("op") != Op.HELLO or not isinstance(interval, int | float) or interval <= 0:
            raise CallFailed(NotTaken(reason="a gateway that doesn't greet"))
        if self.is_new:
            about = {"os": "linux", "browser": "vigil", "device": "vigil"}
            told = {"token": self._token, "intents": INTENTS, "properties": about}
            await self._socket.send({"op": Op.IDENTIFY, "d": told})
        else:
            told = {"token": self._token, "session_id": self._session, "seq": self._seq}
            await self._socket.send({"op": Op.RESUME, "d": told})
        return interval / 1000

    async def events(self) -> AsyncIterator[tuple[str, Any, int]]:
        """Return each event as kind, data and number. Raises: CallFailed, SessionLost."""
        every_s = await self.begin()
        beats = asyncio.create_task(self._beat(every_s), name="discord-beat")
        try:
            while True:
                told = await self._next(every_s)
                if told is not None:
                    yield told
        finally:
            await end_tasks(beats)

    async def _next(self, every_s: float) -> tuple[str, Any, int] | None:
        try:
            # Beats are answered: what is silent for longer is gone.
            told = await self._socket.next(2.5 * every_s)
        except SocketClosed as closed:
            if closed.code in REFUSED:
                raise token_refused(REFUSED[closed.code]) from closed
            if closed.code in FORGOTTEN:
                raise SessionLost(f"{closed.code}") from closed
            raise
        match told.get("op"):
            case Op.EVENT:
                seq = told.get("s")
                self._seq = seq if isinstance(seq, int) else self._seq
                return text_in(told, "t"), told.get("d"), self._seq
            case Op.BEAT:
                await self._socket.send({"op": Op.BEAT, "d": self._seq})
            case Op.RECONNECT:
                raise CallFailed(NotTaken(reason="Discord asks for a new socket"))
            case Op.INVALID if told.get("d") is not True:
                raise SessionLost("it is invalid")
            case Op.INVALID:
                raise CallFailed(NotTaken(reason="Discord asks to resume"))
            case Op.BEATEN:
                self._is_beaten = True
        return None

    async def _beat(self, every_s: float) -> None:
        # Each bot at a moment of its own, and not all at once after a failure of Discord's.
        share = int(token_of("beat", self._token)[:4], 16) / 0x10000
        await asyncio.sleep(every_s * share)
        while self._is_beaten:
            self._is_beaten = False
            await self._socket.send({"op": Op.BEAT, "d": self._seq or None})
            await asyncio.sleep(every_s)
        # Nobody answered: the socket is a corpse.
        await self._socket.close()
