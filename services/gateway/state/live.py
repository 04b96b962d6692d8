"""What passes and is stored nowhere, from the bus to the open sockets of a session: tokens of
answers in the making, and how far calls of tools are.

One subscription for each session with open sockets, shared by them. A socket that can't take one
misses it; the committed message, or the result, replaces them all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus
from vigil.contracts.calls.progress import CallProgress, amount_of
from vigil.subjects import SessionKey

from ..http.wire import LiveToken, ProgressFrame, TokenFrame

log = structlog.get_logger("vigil.gateway")

Take = Callable[[str], None]
SubjectOf = Callable[[SessionKey], str]
FrameOf = Callable[[bytes], str]
_token: Final = msgspec.json.Decoder(LiveToken).decode
_progress: Final = msgspec.json.Decoder(CallProgress).decode


class _Channel:
    """One session's subscription, and who listens."""

    def __init__(self, frame_of: FrameOf) -> None:
        self.listeners: set[Take] = set()
        self.opening: asyncio.Task[Any]
        self._frame_of = frame_of

    async def take(self, msg: Any) -> None:
        """Hand on what passes by to who listens."""
        try:
            frame = self._frame_of(msg.data)
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("unreadable", action="gateway.token", error=str(error))
            return
        for take in tuple(self.listeners):
            take(frame)

    async def end(self) -> None:
        await asyncio.wait({self.opening})
        with contextlib.suppress(Exception):  # the connection is gone, and so is this with it
            await self.opening.result().unsubscribe()


class Live:
    """All sessions with open sockets.

    Args:
        subject_of: where it passes by.
        frame_of: makes the frame, as JSON. Raises: ValueError, it can't be read.
    """

    def __init__(self, bus: Bus, subject_of: SubjectOf, frame_of: FrameOf) -> None:
        self._bus = bus
        self._subject_of = subject_of
        self._frame_of = frame_of
        self._channels: dict[str, _Channel] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def sessions(self) -> int:
        """How many sessions are listened to."""
        return len(self._channels)

    async def join(self, session: SessionKey, take: Take) -> None:
        """Call `take(frame)` with each frame (JSON text) of `session` from now on.

        Raises:
            Unavailable: the broker can't be asked.
        """
        subject = self._subject_of(session)
        channel = self._channels.get(subject)
        if channel is None:
            channel = self._channels[subject] = _Channel(self._frame_of)
            opening = self._bus.listen(subject, channel.take)
            channel.opening = asyncio.create_task(opening, name="live-open")
        channel.listeners.add(take)
        try:
            await asyncio.shield(channel.opening)
        except BaseException:
            await self.leave(session, take)
            raise

    async def leave(self, session: SessionKey, take: Take) -> None:
        """Stop that; the last one to leave ends the subscription."""
        subject = self._subject_of(session)
        channel = self._channels.get(subject)
        if channel is None:
            return
        channel.listeners.discard(take)
        if channel.listeners:
            return
        del self._channels[subject]
        ending = asyncio.create_task(channel.end(), name="live-end")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)  # who leaves may be cancelled meanwhile


def token_frame(data: bytes) -> str:
    """Return the frame of a token as the cortex publishes it. Raises: MsgspecError, ValueError."""
    token = _token(data)
    frame = TokenFrame(turn=token.turn, attempt=token.attempt, text=token.text)
    return msgspec.json.encode(frame).decode()


def progress_frame(data: bytes) -> str:
    """Return the frame of how far a call is. Raises: MsgspecError, ValueError."""
    progress = _progress(data)
    line = ": ".join(filter(None, (amount_of(progress), progress.text)))
    frame = ProgressFrame(
        call_id=progress.call_id, tool=progress.tool, text=line, is_over=progress.is_over
    )
    return msgspec.json.encode(frame).decode()
