"""GET /api/sessions/{key}/tokens: an answer in the making, as Server-Sent Events, and how far calls
of tools are.

What the WebSocket sends as frames of type `token` and `progress`, for who only reads; but an answer
that was begun before begins with all that was written of it. They are never stored: one that comes
too fast is left out, and what is committed replaces them all.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from fastapi import Response

from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from ..callers import Caller, Session, Shared
from ..clients import serve_until_gone
from ..endpoint import Endpoint
from ..http.wire import TokenFrame
from ..signals.streams import HEAD, MEDIA_TYPE, SILENCE_S, send_end, send_more
from ..state.edge import Edge
from ..state.feed import HEARTBEAT
from ..state.live import WholeTokens

QUEUE_MAX: Final = 500


async def get_tokens(edge: Shared, caller: Caller, session: Session) -> Response:
    """Follow the answers in the making of a conversation, as Server-Sent Events of type `token`; of
    type `progress`: how far calls of tools are."""
    return TokenEvents(edge, caller, session)


class TokenEvents(Response):
    """One open stream."""

    def __init__(self, edge: Edge, principal: Principal, session: SessionKey) -> None:
        super().__init__(media_type=MEDIA_TYPE)
        self._edge = edge
        self._principal = principal
        self._session = session
        self._frames: asyncio.Queue[tuple[str, str]] = asyncio.Queue(QUEUE_MAX)
        """Their type, and what they hold."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        edge = self._edge
        with edge.places.hold(self._principal.user):
            try:
                await edge.live.join(self._session, self._take, WholeTokens().frame)
                await edge.doing.join(self._session, self._take_progress)
                await serve_until_gone(
                    self._serve(send), receive, self._edge.stopping, "gateway-token-stream"
                )
            finally:
                await edge.live.leave(self._session, self._take)
                await edge.doing.leave(self._session, self._take_progress)

    def _take(self, frame: str, kind: str = "token") -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._frames.put_nowait((kind, frame))

    def _take_progress(self, frame: str) -> None:
        self._take(frame, "progress")

    async def _serve(self, send: Any) -> None:
        await send(HEAD)
        await send_more(send, HEARTBEAT)
        while self._is_let_in():
            try:
                async with asyncio.timeout(SILENCE_S):
                    kind, frame = await self._frames.get()
            except TimeoutError:
                await send_more(send, HEARTBEAT)
                continue
            if self._is_let_in():  # the token may have ended while it waited
                await send_more(send, f"event: {kind}\ndata: {frame}\n\n".encode())
        await send_end(send)

    def _is_let_in(self) -> bool:
        now = self._edge.clock.now()
        return self._edge.tokens.find_id(self._principal.token_id, now) is not None


_PATH: Final = "/api/sessions/{key}/tokens"
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, get_tokens, {}, (404, 422, 429, 503), events=TokenFrame),
)
