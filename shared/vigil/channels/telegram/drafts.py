"""What an answer looks like while it's being written, as Telegram shows it: for a while, and gone.

A draft is no message. Telegram keeps none of it, and takes it away when a message comes or after
30 seconds: so one that is left behind by a crash says nothing, and what is said is sent as ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from ...background.end import end_tasks
from ...bus.bus import BusError
from ...errors import Unavailable
from ...imports.aiogram import SendMessageDraft
from ..chats.calls import CALL_S, CallFailed
from .composition import UNITS_MAX
from .wire import BotApi

EVERY_S: Final = 1.0
"""Between two drafts in one chat; more, if Telegram asks for it."""


class Drafts:
    """The answers that are being shown, at most one in a chat."""

    def __init__(self, api: BotApi) -> None:
        self._api = api
        self._shown: dict[int, asyncio.Task[None]] = {}

    def show(self, chat: int, about: int, writing: AsyncGenerator[str]) -> None:
        """Show an answer in a chat from now on, instead of the one before.

        Args:
            about: the message that is answered.
            writing: the words so far, whenever there are more.
        """
        before = self._shown.pop(chat, None)
        if before is not None:
            before.cancel()
        task = asyncio.create_task(self._follow(chat, about, writing), name="telegram-draft")
        self._shown[chat] = task
        task.add_done_callback(lambda done: self._forget(chat, done))

    async def close(self) -> None:
        """Show nothing any more."""
        tasks = list(self._shown.values())
        await end_tasks(*tasks)

    def _forget(self, chat: int, task: asyncio.Task[None]) -> None:
        if self._shown.get(chat) is task:
            del self._shown[chat]

    async def _follow(self, chat: int, about: int, writing: AsyncGenerator[str]) -> None:
        # What can't be shown is nobody's matter: it will be said.
        with contextlib.suppress(CallFailed, Unavailable, BusError):
            async with contextlib.aclosing(writing):
                async for text in writing:
                    await asyncio.sleep(await self._draw(chat, about, text))

    async def _draw(self, chat: int, about: int, text: str) -> float:
        """Show how it stands; return how long to wait before the next. Raises: CallFailed."""
        if not text.strip():
            return 0.0
        asked = SendMessageDraft(chat_id=chat, draft_id=about, text=end_of(text))
        try:
            await self._api.call(asked, timeout_s=CALL_S)
        except CallFailed as failed:
            if not failed.wait_s:
                raise
            return failed.wait_s
        return EVERY_S


def end_of(text: str) -> str:
    """Return as much of the end of a text as one draft may have.

    >>> len(end_of("🙂" * 5_000)), end_of("short")
    (2000, 'short')
    """
    return text.encode("utf-16-le")[-2 * UNITS_MAX :].decode("utf-16-le", "ignore")
