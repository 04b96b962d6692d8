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
OwnFrameOf = Callable[[bytes], str | None]
"""Makes the frame of one listener; None: they are told nothing."""
_token: Final = msgspec.json.Decoder(LiveToken).decode
_progress: Final = msgspec.json.Decoder(CallProgress).decode


class _Channel:
    """One session's subscription, and who listens."""

    def __init__(self, frame_of: FrameOf) -> None:
        self.listeners: dict[Take, OwnFrameOf | None] = {}
        self.opening: asyncio.Task[Any]
        self._frame_of = frame_of

    async def take(self, msg: Any) -> None:
        """Hand on what passes by to who listens."""
        try:
            frame = self._frame_of(msg.data)
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("unreadable", action="gateway.token", error=str(error))
            return
        for take, own in tuple(self.listeners.items()):
            told = frame if own is None else own(msg.data)
            if told is not None:
                take(told)

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

    async def join(self, session: SessionKey, take: Take, own: OwnFrameOf | None = None) -> None:
        """Call `take(frame)` with each frame (JSON text) of `session` from now on.

        Args:
            own: makes this listener's frames; None: they get everybody's.

        Raises:
            Unavailable: the broker can't be asked.
        """
        subject = self._subject_of(session)
        channel = self._channels.get(subject)
        if channel is None:
            channel = self._channels[subject] = _Channel(self._frame_of)
            opening = self._bus.listen(subject, channel.take)
            channel.opening = asyncio.create_task(opening, name="live-open")
        channel.listeners[take] = own
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
        channel.listeners.pop(take, None)
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


class WholeTokens:
    """Frames of one listener, who gets each answer from its beginning on: of one that was begun
    before they came the first frame has all that was written, about a second later."""

    def __init__(self) -> None:
        self._known: tuple[int | str, int] | None = None
        """Turn and attempt of the answer that they have from its beginning on."""

    def frame(self, data: bytes) -> str | None:
        """Return the frame of a token; None: its beginning isn't known yet. Raises: as
        `token_frame`."""
        token = _token(data)
        answer = (token.turn, token.attempt)
        if answer == self._known or token.before is msgspec.UNSET:
            return token_frame(data)
        if token.before is None:
            return None
        self._known = answer
        frame = TokenFrame(turn=token.turn, attempt=token.attempt, text=token.before + token.text)
        return msgspec.json.encode(frame).decode()


def progress_frame(data: bytes) -> str:
    """Return the frame of how far a call is. Raises: MsgspecError, ValueError."""
    progress = _progress(data)
    line = ": ".join(filter(None, (amount_of(progress), progress.text)))
    frame = ProgressFrame(
        call_id=progress.call_id, tool=progress.tool, text=line, is_over=progress.is_over
    )
    return msgspec.json.encode(frame).decode()
