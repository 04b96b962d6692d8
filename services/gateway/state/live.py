"""Tokens of answers in the making, from the bus to the open sockets of a session.

One subscription for each session with open sockets, shared by them. Tokens are never stored: a
socket that can't take one misses it, and the committed message replaces them all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.errors import Unavailable
from vigil.subjects import SessionKey

from ..http.wire import LiveToken, TokenFrame

log = structlog.get_logger("vigil.gateway")

Take = Callable[[str], None]
_decode: Final = msgspec.json.Decoder(LiveToken).decode


class _Channel:
    """One session's subscription, and who listens."""

    def __init__(self) -> None:
        self.listeners: set[Take] = set()
        self.opening: asyncio.Task[Any]

    async def on_token(self, msg: Any) -> None:
        frame = _frame_of(msg.data)
        for take in tuple(self.listeners) if frame else ():
            take(frame)

    async def end(self) -> None:
        await asyncio.wait({self.opening})
        with contextlib.suppress(Exception):  # the connection is gone, and so is this with it
            await self.opening.result().unsubscribe()


class Live:
    """All sessions with open sockets."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._channels: dict[str, _Channel] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def sessions(self) -> int:
        """How many sessions are listened to."""
        return len(self._channels)

    async def join(self, session: SessionKey, take: Take) -> None:
        """Call `take(frame)` with each token frame (JSON text) of `session` from now on.

        Raises:
            Unavailable: the broker can't be asked.
        """
        subject = session.live
        channel = self._channels.get(subject)
        if channel is None:
            channel = self._channels[subject] = _Channel()
            opening = self._open(subject, channel)
            channel.opening = asyncio.create_task(opening, name="live-open")
        channel.listeners.add(take)
        try:
            await asyncio.shield(channel.opening)
        except BaseException:
            await self.leave(session, take)
            raise

    async def leave(self, session: SessionKey, take: Take) -> None:
        """Stop that; the last one to leave ends the subscription."""
        channel = self._channels.get(session.live)
        if channel is None:
            return
        channel.listeners.discard(take)
        if channel.listeners:
            return
        del self._channels[session.live]
        ending = asyncio.create_task(channel.end(), name="live-end")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)  # who leaves may be cancelled meanwhile

    async def _open(self, subject: str, channel: _Channel) -> Any:
        try:
            return await self._bus.listen(subject, channel.on_token)
        except Exception as error:
            raise Unavailable(f"{subject}: {error!r}") from error


def _frame_of(data: bytes) -> str:
    """Return the frame for a token as published; empty if it can't be read."""
    try:
        token = _decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        log.warning("unreadable token", action="gateway.token", error=str(error))
        return ""
    frame = TokenFrame(turn=token.turn, attempt=token.attempt, text=token.text)
    return msgspec.json.encode(frame).decode()
