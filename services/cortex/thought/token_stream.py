"""The words of an answer on their way to whoever watches the session."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from vigil.errors import Unavailable

TOKEN_FLUSH_S: Final = 0.04
"""Tokens are gathered this long: 25 frames a second look fluent and cost little."""
WHOLE_EVERY_S: Final = 1.0
"""How often what was written before goes along, for who came to watch in the middle."""
WHOLE_MAX: Final = 50_000
"""Characters beyond which it doesn't: then who comes waits for the message."""


class StreamedText(msgspec.Struct, frozen=True):
    """A piece of an answer in the making, on `live.>`; never stored."""

    turn: int
    attempt: int
    text: str
    before: str | None
    """What was written before it, in the first and about once a second; None: it isn't told."""


class TokenStream:
    """Gathers text for a moment, then publishes it to whoever watches the session."""

    def __init__(
        self,
        send: Callable[[str, bytes], Awaitable[None]],
        subject: str,
        turn: int,
        attempt: int,
    ) -> None:
        self._send = send
        self._subject = subject
        self._turn = turn
        self._attempt = attempt
        self._text: list[str] = []
        self._before = ""
        self._whole_at_s = -math.inf
        """When what was before went along last, on the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, text: str) -> None:
        self._text.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOKEN_FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        text = "".join(self._text)
        token = StreamedText(self._turn, self._attempt, text, self._told_before())
        self._text.clear()
        self._before += text
        task = asyncio.ensure_future(self._publish(msgspec.json.encode(token)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _told_before(self) -> str | None:
        """Return what was written before, if it's time to tell it."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._whole_at_s < WHOLE_EVERY_S or len(self._before) > WHOLE_MAX:
            return None
        self._whole_at_s = now_s
        return self._before

    async def _publish(self, data: bytes) -> None:
        # Tokens are a courtesy: the committed message replaces them, so a lost one is no loss.
        with contextlib.suppress(Unavailable):
            await self._send(self._subject, data)

    def close(self) -> None:
        """Drop what is left: the committed message is on its way."""
        if self._timer is not None:
            self._timer.cancel()
