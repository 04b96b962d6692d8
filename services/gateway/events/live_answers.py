"""An answer in the making, for a channel whose network can show what isn't said yet.

What is shown so is nothing that was said: it's lost with whoever shows it, and what is committed
takes its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from vigil.background.end import end_tasks
from vigil.bus.shared import SessionFollower
from vigil.subjects import SessionKey

from ..http.wire import TokenFrame
from ..state.edge import Edge

SILENCE_S: Final = 60.0
"""After which nobody waits for the next word."""
_decode: Final = msgspec.json.Decoder(TokenFrame).decode


class _AnswerSoFar:
    """The words of one answer so far."""

    def __init__(self) -> None:
        self.text = ""
        self.is_over = False
        self.changed = asyncio.Event()
        self._of: tuple[object, int] | None = None

    def take(self, frame: str) -> None:
        token = _decode(frame)
        if self._of != (token.turn, token.attempt):
            self._of, self.text = (token.turn, token.attempt), ""
        self.text += token.text
        self.changed.set()

    async def end_with(self, follower: SessionFollower) -> None:
        """Wait until anything is said for good."""
        async for _ in follower:
            break
        self.is_over = True
        self.changed.set()


async def writing(edge: Edge, session: SessionKey) -> AsyncGenerator[str]:
    """Yield how the answer to the newest message stands, whenever it has more words and the last
    state was taken, until it's said.

    Raises:
        Unavailable, BusError: the broker can't be asked.
    """
    page = _AnswerSoFar()
    heard = await edge.bus.newest(session.stream, [session.in_user])
    follower = await edge.said.follow(session, heard + 1)
    ending = asyncio.create_task(page.end_with(follower), name="gateway-writing")

    async def let_go() -> None:
        await end_tasks(ending)
        await follower.close()
        await edge.live.leave(session, page.take)

    try:
        await edge.live.join(session, page.take)
        while await _has_more(page):
            yield page.text
    finally:
        # The next message may come, and end this, while it is let go.
        await asyncio.shield(asyncio.create_task(let_go(), name="gateway-writing-end"))


async def _has_more(page: _AnswerSoFar) -> bool:
    try:
        async with asyncio.timeout(SILENCE_S):
            await page.changed.wait()
    except TimeoutError:
        return False
    page.changed.clear()
    return not page.is_over
